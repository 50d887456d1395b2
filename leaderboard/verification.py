"""Verifying an entry: every solution judged again under a fresh secret salt, and a stamp if it agrees."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable
from pathlib import Path

from kernelgym.config import JudgeConfig
from kernelgym.errors import UsageError
from kernelgym.judging import SupportsEvaluate
from kernelgym.leaderboard import checks
from kernelgym.leaderboard.entry import Entry, Verification
from kernelgym.leaderboard.loading import load_entry
from kernelgym.leaderboard.replay import Progress, fresh, identity, replay, versions
from kernelgym.leaderboard.writing_entries import write_stamp
from kernelgym.writing import writing

__all__ = ["Verified", "verify"]


@dataclasses.dataclass(frozen=True)
class Verified:
    """What came of a verification.

    Attributes:
        entry: The entry, as it is now.
        differences: What the checks or the replay contradict; none when it was stamped.
        stamp: What was written; None where something differs.
    """

    entry: Entry
    differences: tuple[str, ...]
    stamp: Verification | None


def verify(
    folder: Path,
    *,
    by: str,
    where: str,
    device: str = "auto",
    make_judge: Callable[[JudgeConfig], SupportsEvaluate],
    others: tuple[checks.Fingerprints, ...] = (),
    progress: Progress = lambda done, total: None,
) -> Verified:
    """Replays an entry and stamps it if everything agrees; an old stamp is left where it does not.

    A replay by the submitter (the same user on the same machine, or one of the authors) is stamped
    as their own, which does not make the entry `verified`.

    Args:
        folder: The entry's.
        by: Who vouches for the replay.
        where: On which machine, as a reader should know it.
        device: See `kernelgym.JudgeConfig`.
        make_judge: Makes the judge, which is closed again.
        others: The board's other entries, for copies.
        progress: Called with (done, total).

    Raises:
        UsageError: The entry cannot be read, or this machine has another device than its board.
        EnvironmentFault: A solution could not be judged: neither agreement nor difference.
    """
    entry = load_entry(folder)
    # What a stamp says of other content is not this replay's business.
    problems = [p for p in checks.check_entry(entry) if not p.code.startswith("stamp.")]
    problems += checks.copies(checks.fingerprints(entry), others)
    if problems:
        return Verified(entry, tuple(map(str, problems)), None)
    config = fresh(entry.environment.config, device=device)
    judge = make_judge(config.replace(size=entry.board.size))
    try:
        verdicts, found = replay(entry.results, judge, entry.board.device, progress)
    finally:
        judge.close()
    if found:
        return Verified(entry, tuple(found), None)
    verifier = identity()
    stamp = Verification(
        by=by,
        where=where,
        when=datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0),
        content=entry.content,
        tasks=len(verdicts),
        own=verifier == entry.environment.submitter or by in entry.info.authors,
        verifier=verifier,
        salts=tuple(verdict.provenance.salt_commitment for verdict in verdicts),
        versions=versions(verdicts[0]),
    )
    if load_entry(folder).content != entry.content:
        raise UsageError(f"{folder}: expected it to stay as it is during its replay, got changes")
    with writing(folder):
        write_stamp(folder, stamp)
    return Verified(load_entry(folder), (), stamp)
