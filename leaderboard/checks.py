"""What must hold for an entry beyond its form: one board, honest times, no copy of another.

Each problem has a code and says where it is. Which checks there are, and what they cannot see, is in
`docs/leaderboard.md`; what decides in the end is the replay (`kernelgym.leaderboard.verification`).
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from kernelgym.config import JudgeConfig
from kernelgym.errors import RecordError
from kernelgym.judge.defences import OFF, is_complete
from kernelgym.judge.reasons import REASONS
from kernelgym.judge.verdict import Measurement, Speedup, Timing, Verdict
from kernelgym.leaderboard.board import Board
from kernelgym.leaderboard.entry import Entry, Status, TaskResult
from kernelgym.leaderboard.loading import entry_folders, load_entry
from kernelgym.leaderboard.told import Told, told

__all__ = ["Fingerprints", "Problem", "check_all", "check_entry", "copies", "fingerprints"]

_CONFINED = ("standard", "hardened")
# Either of a pair will do: which one there is depends on the kernel.
_REQUIRED = (("no_new_privileges",), ("rlimits",), ("landlock", "mountns"), ("no_network",))
_LEAST_DRAWS = JudgeConfig().draws
_RATIO_TOLERANCE = 0.05
_COPIED = 0.9


@dataclasses.dataclass(frozen=True)
class Problem:
    """Something that keeps an entry from the board.

    Attributes:
        code: Stable name of the check, such as `"time.edited"`.
        where: File or task.
        message: What was expected, and what is there.
    """

    code: str
    where: str
    message: str

    def __str__(self) -> str:
        """In a line."""
        return f"{self.code}: {self.where}: {self.message}"


@dataclasses.dataclass(frozen=True)
class Fingerprints:
    """What an entry's solutions are recognised by.

    Attributes:
        id: The entry's.
        authors: The entry's.
        solutions: Task id to a hash of its files without white space.
    """

    id: str
    authors: tuple[str, ...]
    solutions: Mapping[str, str]


def check_all(chosen: Sequence[Path], root: Path) -> tuple[Problem, ...]:
    """Checks some entries, by themselves and against all those below `root`.

    Where there are several, each problem says of which entry it is.
    """
    problems: list[Problem] = []
    known: dict[Path, Fingerprints] = {}
    wanted = {folder.resolve() for folder in chosen}
    for folder in {*entry_folders(root), *chosen}:
        own = folder.resolve() in wanted
        try:
            entry = load_entry(folder)
        except RecordError as error:
            if own:
                # The message names the file, which lies in the folder.
                said = str(error).removeprefix(f"{folder}: ").removeprefix(f"{folder}/")
                problems.append(Problem("record", str(folder), said))
            continue
        known[folder.resolve()] = fingerprints(entry)
        if own:
            of = f"{entry.id}: " if len(wanted) > 1 else ""
            problems.extend(
                dataclasses.replace(one, where=of + one.where) for one in check_entry(entry)
            )
    for folder in wanted & known.keys():
        problems.extend(copies(known[folder], known.values()))
    return tuple(sorted(problems, key=str))


def check_entry(entry: Entry) -> tuple[Problem, ...]:
    """All problems of an entry by itself."""
    return tuple(_problems(entry))


def fingerprints(entry: Entry) -> Fingerprints:
    """What `copies` compares."""
    solutions = {result.task: _fingerprint(result) for result in entry.results}
    return Fingerprints(entry.id, entry.info.authors, solutions)


def copies(one: Fingerprints, others: Iterable[Fingerprints]) -> tuple[Problem, ...]:
    """Where an entry is another's copy: nine tenths of its solutions are that one's.

    The same authors may show one set of solutions on several boards, but once on each.
    """
    found = []
    for other in others:
        if other.id == one.id:
            continue
        same = sum(other.solutions.get(task) == text for task, text in one.solutions.items())
        elsewhere = other.id.split("/")[0] != one.id.split("/")[0]
        if same < _COPIED * len(one.solutions) or (elsewhere and other.authors == one.authors):
            continue
        message = (
            f"expected solutions of its own, got {same} of {len(one.solutions)} that are those of "
            f"{other.id}, white space aside"
        )
        found.append(Problem("entry.copied", one.id, message))
    return tuple(found)


def _problems(entry: Entry) -> Iterator[Problem]:
    board = entry.board
    if entry.folder.parent.name != board.slug:
        message = f"expected the folder of its board, {board.slug}, got {entry.folder.parent.name}"
        yield Problem("board.folder", str(entry.folder), message)
    yield from _rules(entry)
    yield from _stamp(entry)
    salts = Counter(result.verdict.provenance.salt_commitment for result in entry.results)
    for result in entry.results:
        verdict = result.verdict
        yield from _provenance(verdict, board)
        yield from _consistency(verdict)
        if verdict.correct:
            yield from _times(verdict, board)
        salt = verdict.provenance.salt_commitment
        if salt and salts[salt] > 1:
            message = "expected a salt of its own, got that of another verdict: a copied verdict"
            yield Problem("salt.repeated", result.task, message)
    yield from _traces(entry)


def _rules(entry: Entry) -> Iterator[Problem]:
    config, board = entry.environment.config, entry.board
    where = "environment.json"
    for name in ("protocol", "ruleset", "precision"):
        asked, expected = getattr(config, name), getattr(board, name)
        if asked != expected:
            message = f"{name}: expected the board's, {expected}, got {asked}"
            yield Problem("board.mixed", where, message)
    if config.seed is not None:
        message = f"expected verdicts under secret salts, got seed {config.seed}"
        yield Problem("rules.seed", where, message)
    if config.draws < _LEAST_DRAWS:
        message = f"expected at least {_LEAST_DRAWS} draws of inputs, got {config.draws}"
        yield Problem("rules.draws", where, message)
    if "eager" not in config.baselines:
        yield Problem("rules.baselines", where, "expected times against eager, got none")


def _stamp(entry: Entry) -> Iterator[Problem]:
    stamp, where = entry.verification, "verification.json"
    if stamp is None:
        return
    if entry.status is Status.STALE:
        message = "expected the content that was verified, got another: changed since"
        yield Problem("stamp.stale", where, message)
    own = stamp.verifier == entry.environment.submitter or stamp.by in entry.info.authors
    if own and not stamp.own:
        message = f"expected a replay by somebody else, got one by its submitter ({stamp.by})"
        yield Problem("stamp.own", where, message)
    if stamp.tasks != len(entry.results):
        message = f"expected {len(entry.results)} solutions replayed, got {stamp.tasks}"
        yield Problem("stamp.partial", where, message)


def _provenance(verdict: Verdict, board: Board) -> Iterator[Problem]:
    made = verdict.provenance
    for name in ("device", "protocol", "ruleset", "precision", "size"):
        got, expected = getattr(made, name), getattr(board, name)
        if got != expected:
            message = f"{name}: expected the board's, {expected}, got {got}"
            yield Problem("board.mixed", verdict.task, message)
    if not board.modelled and made.protection not in _CONFINED:
        message = f"expected protection standard or hardened, got {made.protection or 'none'}"
        yield Problem("protection.level", verdict.task, message)
    if not is_complete(made.protections):
        off = ", ".join(name for name in made.protections if name.startswith(OFF))
        message = f"expected a verdict with every defence in force, got {off}"
        yield Problem("protection.off", verdict.task, message)
    if verdict.correct and made.protection in _CONFINED:
        for names in _REQUIRED:
            if not set(names) & set(made.protections):
                message = f"expected {' or '.join(names)} in force, got neither"
                yield Problem("protection.off", verdict.task, message)


def _consistency(verdict: Verdict) -> Iterator[Problem]:
    reason = REASONS.get(verdict.reason)
    if verdict.correct:
        checked = verdict.correctness
        if verdict.reason or checked is None or not 0 < checked.draws == checked.passed:
            message = "expected a correct verdict to have passed all of its draws, without a reason"
            yield Problem("verdict.inconsistent", verdict.task, message)
    elif reason is None or reason.outcome is not verdict.outcome:
        message = f"expected a reason for {verdict.outcome}, got {verdict.reason!r}"
        yield Problem("verdict.inconsistent", verdict.task, message)


def _times(verdict: Verdict, board: Board) -> Iterator[Problem]:
    timing = verdict.timing
    if timing is None or timing.speedup_eager is None:
        yield Problem("time.missing", verdict.task, "expected a speedup against eager, got none")
        return
    accepted = ("modelled",) if board.modelled else ("measured", "stored")
    for name, time in _measurements(timing):
        if time.source not in accepted:
            message = f"{name}: expected {' or '.join(accepted)}, got {time.source}"
            yield Problem("time.modelled", verdict.task, message)
        if not 0 < time.low <= time.median <= time.high:
            message = f"{name}: expected a time inside its interval, got {time.median} s"
            yield Problem("time.edited", verdict.task, message)
    for name, baseline, speedup in (
        ("eager", timing.eager, timing.speedup_eager),
        ("compile", timing.compile, timing.speedup_compile),
    ):
        yield from _ratio(verdict.task, name, timing.candidate, baseline, speedup)
    if timing.light_fraction is not None and not 0 <= timing.light_fraction <= 1:
        message = f"light_fraction: expected 0 to 1, got {timing.light_fraction}"
        yield Problem("time.edited", verdict.task, message)


def _ratio(
    task: str,
    name: str,
    candidate: Measurement,
    baseline: Measurement | None,
    speedup: Speedup | None,
) -> Iterator[Problem]:
    if speedup is None:
        return
    if not 0 < speedup.low <= speedup.value <= speedup.high:
        message = f"{name}: expected a speedup inside its interval, got {speedup.value}"
        yield Problem("time.edited", task, message)
    if baseline is not None and candidate.median > 0:
        ratio = baseline.median / candidate.median
        if abs(ratio / speedup.value - 1) > _RATIO_TOLERANCE if speedup.value > 0 else True:
            message = (
                f"expected the speedup against {name} that its times give, {ratio:.4g}, got "
                f"{speedup.value:.4g}"
            )
            yield Problem("time.edited", task, message)


def _measurements(timing: Timing) -> Iterator[tuple[str, Measurement]]:
    yield "candidate", timing.candidate
    for name, time in (("eager", timing.eager), ("compile", timing.compile)):
        if time is not None:
            yield name, time


def _traces(entry: Entry) -> Iterator[Problem]:
    """Where there is a trace, each verdict stands in it, and it holds no more than was stated."""
    if not entry.traces:
        return
    counts: Counter[str] = Counter()
    known: dict[tuple[str, str], list[Told]] = {}
    for path in entry.traces:
        try:
            for one in told(path):
                counts[one.task] += 1
                known.setdefault((one.task, one.source_hash), []).append(one)
        except RecordError as error:
            yield Problem("trace.unreadable", str(path), str(error))
            return
    for result in entry.results:
        if not _is_told(result.verdict, known.get((result.task, result.verdict.source_hash), ())):
            message = "expected the verdict that the trace tells, got another"
            yield Problem("trace.differs", result.task, message)
    used = entry.info.budget
    stated = [(task, count, used.verdicts_per_task) for task, count in counts.items()]
    for where, count, limit in (*stated, ("all tasks", sum(counts.values()), used.verdicts)):
        if limit is not None and count > limit:
            message = f"expected at most the {limit} verdicts stated, got {count} in the trace"
            yield Problem("budget.exceeded", where, message)


def _is_told(verdict: Verdict, candidates: Iterable[Told]) -> bool:
    try:
        return any(one.verdict() == verdict for one in candidates)
    except RecordError:
        return False


def _fingerprint(result: TaskResult) -> str:
    digest = hashlib.sha256()
    for text in result.sources.values():
        digest.update("".join(text.split()).encode("utf-8") + b"\0")
    return digest.hexdigest()
