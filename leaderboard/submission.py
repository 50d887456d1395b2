"""From results to an entry: read, judged, checked, and written in one step or not at all."""

from __future__ import annotations

import dataclasses
import datetime
import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from kernelgym import rewards
from kernelgym import tasks as catalogue
from kernelgym._version import __version__
from kernelgym.config import JudgeConfig
from kernelgym.errors import UsageError
from kernelgym.judge.verdict import Verdict
from kernelgym.judging import SupportsEvaluate
from kernelgym.leaderboard import checks
from kernelgym.leaderboard.board import TASK_SETS, Board, Budget, slug_of
from kernelgym.leaderboard.entry import BudgetUsed, Entry, EntryInfo, Environment, TaskResult
from kernelgym.leaderboard.imports import Imported, read_results
from kernelgym.leaderboard.loading import entry_folders, load_entry
from kernelgym.leaderboard.replay import Progress, fresh, identity, judge_all, replay, versions
from kernelgym.leaderboard.summaries import summaries
from kernelgym.leaderboard.writing_entries import write_entry
from kernelgym.writing import writing

__all__ = ["Claim", "submit"]

MakeJudge = Callable[[JudgeConfig], SupportsEvaluate]


@dataclasses.dataclass(frozen=True)
class Claim:
    """What a submitter says, beside the results.

    Attributes:
        name: See `kernelgym.leaderboard.entry.EntryInfo`, as for the next seven.
        authors: See there.
        agent: See there; a run says it itself.
        model: See there.
        model_date: See there.
        harness: See there; this kernelgym where it is `""` and a run is submitted.
        licence: See there.
        links: See there.
        verdicts_per_task: Verdicts taken for any one task; a run's are counted. Without it, other
            results compete under an open budget.
        tokens: Tokens that models read and wrote.
        money_usd: What it cost.
        task_set: One of `TASK_SETS`; by default the smallest that holds all tasks.
    """

    name: str
    authors: tuple[str, ...]
    agent: str = ""
    model: str = ""
    model_date: datetime.date | None = None
    harness: str = ""
    licence: str = ""
    links: tuple[str, ...] = ()
    verdicts_per_task: int | None = None
    tokens: int | None = None
    money_usd: float | None = None
    task_set: str | None = None


def submit(
    results: Path,
    claim: Claim,
    entries: Path,
    *,
    config: JudgeConfig,
    make_judge: MakeJudge,
    sample: int | None = 5,
    cache: Path | None = None,
    progress: Progress = lambda done, total: None,
) -> Entry:
    """Makes an entry of results.

    Args:
        results: A run's folder, or anything else that `read_results` knows.
        claim: What the submitter says.
        entries: The folder of entries; must be there.
        config: How results without verdicts are judged, and on which device; a run brings its own
            rules.
        make_judge: Makes the judge, which is closed again.
        sample: Tasks of a run to judge again, chosen at random; None for all of them, 0 for none.
        cache: See `kernelgym.leaderboard.summaries`.
        progress: Called with (done, total) while solutions are judged.

    Returns:
        The entry, written to `entries/<board>/<name>/`.

    Raises:
        UsageError: Something is not as it should be; nothing has been written then.
        EnvironmentFault: A solution could not be judged; nothing has been written either.
    """
    if not entries.is_dir():
        raise UsageError(
            f"expected the folder of entries at {entries}, got none: call it in a checkout of "
            "kernelgym, or say where with --entries"
        )
    imported = read_results(results)
    rules = fresh(imported.config or config, device=config.device)
    # What can be refused before judging for an hour is refused before.
    name = slug_of(claim.name)
    if not name:
        raise UsageError(f"name: expected letters or digits in it, got {claim.name!r}")
    task_set = _task_set(claim, imported)
    judge = make_judge(rules)
    try:
        if imported.results:
            chosen = imported.results
            board = _board(chosen, task_set, imported, claim)
            info = _info(claim, board, imported, chosen)
            again = _sample(chosen, sample)
            _, found = replay(again, judge, board.device, progress) if again else ([], [])
            if found:
                raise UsageError("judged again, these differ: " + "; ".join(found))
            rejudged = tuple(result.task for result in again)
            environment = Environment(
                imported.config or rules, imported.source, imported.versions, 0, "", rejudged
            )
        else:
            chosen = _judged(imported, judge, progress)
            board = _board(chosen, task_set, imported, claim)
            info = _info(claim, board, imported, chosen)
            known = versions(chosen[0].verdict)
            environment = Environment(rules, imported.source, known, 0, "")
    finally:
        judge.close()
    environment = dataclasses.replace(environment, submitter=identity())
    return _write(entries, name, info, chosen, environment, imported.traces, cache)


def _judged(
    imported: Imported, judge: SupportsEvaluate, progress: Progress
) -> tuple[TaskResult, ...]:
    """The best of each task's candidates: the fastest correct one, the first where none is."""
    jobs = [(task, one) for task, samples in imported.candidates.items() for one in samples]
    best: dict[str, TaskResult] = {}
    reward = rewards.get("speedup")
    for (task, workspace), verdict in zip(jobs, judge_all(judge, jobs, progress), strict=True):
        before = best[task].verdict if task in best else None
        if _better(reward, verdict, before):
            best[task] = TaskResult(task, verdict, workspace.files)
    return tuple(best.values())


def _better(reward: rewards.Reward, verdict: Verdict, before: Verdict | None) -> bool:
    if before is None or verdict.correct != before.correct:
        return before is None or verdict.correct
    return rewards.better(reward, verdict, before) is verdict


def _task_set(claim: Claim, imported: Imported) -> str:
    tasks = {result.task for result in imported.results} or set(imported.candidates)
    if claim.task_set is None:
        levels = {task.split("/")[0] for task in tasks}
        return f"level{levels.pop()[1:]}" if len(levels) == 1 else "kernelbench"
    if claim.task_set not in TASK_SETS:
        raise UsageError(
            f"task_set: expected one of {', '.join(TASK_SETS)}, got {claim.task_set!r}"
        )
    held = catalogue.ids(None if claim.task_set == "kernelbench" else int(claim.task_set[-1]))
    for task in sorted(tasks.difference(held)):
        raise UsageError(f"expected tasks of {claim.task_set}, got {task}")
    return claim.task_set


def _board(results: Sequence[TaskResult], task_set: str, imported: Imported, claim: Claim) -> Board:
    made = results[0].verdict.provenance
    return Board(
        made.device,
        made.protocol,
        made.ruleset,
        made.precision,
        task_set,
        made.size,
        Budget.of(_verdicts_per_task(imported, claim)),
    )


def _verdicts_per_task(imported: Imported, claim: Claim) -> int | None:
    counted, stated = max(imported.verdicts.values()), claim.verdicts_per_task
    if stated is not None and stated < counted:
        raise UsageError(f"verdicts_per_task: expected at least the {counted} there, got {stated}")
    return counted if stated is None and imported.config is not None else stated


def _info(
    claim: Claim, board: Board, imported: Imported, results: Sequence[TaskResult]
) -> EntryInfo:
    run = imported.config is not None
    used = BudgetUsed(
        verdicts=sum(imported.verdicts.values()) if run else None,
        verdicts_per_task=_verdicts_per_task(imported, claim),
        tokens=claim.tokens,
        money_usd=claim.money_usd,
    )
    return EntryInfo(
        name=claim.name,
        authors=claim.authors,
        board=board,
        agent=claim.agent or imported.agent,
        model=claim.model,
        model_date=claim.model_date,
        harness=claim.harness or (f"kernelgym {__version__}" if run else ""),
        licence=claim.licence,
        links=claim.links,
        budget=used,
        submitted=datetime.datetime.now(datetime.timezone.utc).date(),
    )


def _sample(results: Sequence[TaskResult], count: int | None) -> list[TaskResult]:
    if count is None or count >= len(results):
        return list(results)
    return random.SystemRandom().sample(list(results), count)


def _write(
    entries: Path,
    name: str,
    info: EntryInfo,
    results: Sequence[TaskResult],
    environment: Environment,
    traces: Sequence[Path],
    cache: Path | None,
) -> Entry:
    target = entries / info.board.slug / name
    if target.exists():
        raise UsageError(
            f"expected a name that is new on its board, got {name}, which {target} has"
        )
    with (
        writing(entries),
        tempfile.TemporaryDirectory(dir=entries.resolve().parent, prefix=".entry-") as staging,
    ):
        draft = Path(staging) / info.board.slug / name
        write_entry(draft, info, results, environment, traces)
        entry = load_entry(draft)
        problems = [*checks.check_entry(entry)]
        others = summaries(entries, cache) if entry_folders(entries) else []
        problems += checks.copies(
            checks.fingerprints(entry), [other.fingerprints for other in others]
        )
        if problems:
            raise UsageError("not fit for the board:\n" + "\n".join(f"  {p}" for p in problems))
        target.parent.mkdir(exist_ok=True)
        draft.rename(target)
    return load_entry(target)
