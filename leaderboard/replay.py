"""Judging an entry's solutions again, and what differs then."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from kernelgym._version import __version__
from kernelgym.config import JudgeConfig
from kernelgym.errors import EnvironmentFault, UsageError
from kernelgym.judge.defences import is_complete
from kernelgym.judge.verdict import Speedup, Verdict
from kernelgym.judging import SupportsEvaluate, evaluate_batch
from kernelgym.leaderboard.entry import TaskResult
from kernelgym.tasks import get
from kernelgym.workspace import Workspace

__all__ = ["AGREEMENT", "differences", "fresh", "identity", "judge_all", "replay", "versions"]

AGREEMENT = 0.03
"""How much each interval is widened, relative, before two are held against each other: what the
same kernel may differ by between two machines with the same model of GPU."""


_BATCH = 16
_MAX_SECONDS = 600.0
_MAX_MEMORY = 64 * 2**30

Progress: TypeAlias = Callable[[int, int], None]


def fresh(config: JudgeConfig, *, device: str = "auto") -> JudgeConfig:
    """The rules of a configuration for judging again: a fresh secret salt, the device at hand.

    What an entry says of limits and confinement is a stranger's word: it is bounded.
    """
    return config.replace(
        seed=None,
        device=device,
        protection="standard" if config.protection == "basic" else config.protection,
        build_timeout=min(config.build_timeout, _MAX_SECONDS),
        run_timeout=min(config.run_timeout, _MAX_SECONDS),
        memory_limit=min(config.memory_limit, _MAX_MEMORY),
        nvcc_check=False,
    )


def judge_all(
    judge: SupportsEvaluate,
    jobs: Sequence[tuple[str, Workspace]],
    progress: Progress = lambda done, total: None,
) -> list[Verdict]:
    """Judges (task id, workspace) pairs, some at a time; the verdicts in order.

    Raises:
        EnvironmentFault: One of them could not be judged; names its task.
    """
    verdicts: list[Verdict] = []
    for start in range(0, len(jobs), _BATCH):
        batch = jobs[start : start + _BATCH]
        judged = evaluate_batch(judge, [(get(task), workspace) for task, workspace in batch])
        for (task, _), verdict in zip(batch, judged, strict=True):
            if isinstance(verdict, EnvironmentFault):
                raise EnvironmentFault(f"{task} could not be judged: {verdict}") from verdict
            verdicts.append(verdict)
        progress(len(verdicts), len(jobs))
    return verdicts


def replay(
    results: Sequence[TaskResult],
    judge: SupportsEvaluate,
    device: str,
    progress: Progress = lambda done, total: None,
) -> tuple[list[Verdict], list[str]]:
    """Judges solutions again and compares.

    Args:
        results: What is claimed.
        judge: Judges them.
        device: The model that the claims are about.
        progress: Called with (done, total).

    Returns:
        The new verdicts, and a line for each difference: none when all agree.

    Raises:
        UsageError: This machine has another device, or the judge has a defence off.
        EnvironmentFault: A solution could not be judged: neither agreement nor difference.
    """
    jobs = [(result.task, Workspace(result.sources)) for result in results]
    verdicts = judge_all(judge, jobs[:1])
    for verdict in verdicts:  # before the rest is judged on the wrong machine
        if verdict.provenance.device != device:
            raise UsageError(
                f"expected a machine with {device} to judge again on, got "
                f"{verdict.provenance.device}"
            )
        if not is_complete(verdict.provenance.protections):
            raise UsageError(
                "expected a judge with every defence in force to judge again with, got "
                f"{', '.join(verdict.provenance.protections)}"
            )
    verdicts += judge_all(judge, jobs[1:], lambda done, _: progress(1 + done, len(jobs)))
    found = [
        f"{result.task}: {line}"
        for result, verdict in zip(results, verdicts, strict=True)
        for line in differences(result.verdict, verdict)
    ]
    return verdicts, found


def differences(claimed: Verdict, found: Verdict) -> list[str]:
    """What a replay contradicts: outcome, or a speedup outside of the intervals."""
    if claimed.outcome is not found.outcome:
        why = f" ({found.reason})" if found.reason else ""
        return [f"expected {claimed.outcome}, as claimed, got {found.outcome}{why}"]
    lines = []
    for name in ("eager", "compile"):
        before, now = _speedup(claimed, name), _speedup(found, name)
        if before is not None and now is None:
            lines.append(f"expected a speedup against {name}, got none")
        elif before is not None and now is not None and not _agree(before, now):
            lines.append(
                f"expected the speedup against {name} that is claimed, {_shown(before)}, got "
                f"{_shown(now)}"
            )
    return lines


def identity() -> str:
    """A hash of user and machine: tells whether two stamps are of one hand, not whose."""
    told = f"kernelgym:{os.getuid()}@{platform.node()}"
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def versions(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    """What a verdict depends on, as (name, version) pairs; none that is not known."""
    made = verdict.provenance
    pairs = (
        ("kernelgym", __version__),
        ("python", platform.python_version()),
        ("torch", made.torch),
        ("cuda", made.cuda),
        ("driver", made.driver),
        ("compiler", made.compiler),
    )
    return tuple((name, version) for name, version in pairs if version)


def _speedup(verdict: Verdict, name: str) -> Speedup | None:
    if verdict.timing is None:
        return None
    speedups: Mapping[str, Speedup | None] = {
        "eager": verdict.timing.speedup_eager,
        "compile": verdict.timing.speedup_compile,
    }
    return speedups[name]


def _agree(one: Speedup, other: Speedup) -> bool:
    wide, narrow = 1 + AGREEMENT, 1 - AGREEMENT
    return one.low * narrow <= other.high * wide and other.low * narrow <= one.high * wide


def _shown(speedup: Speedup) -> str:
    return f"{speedup.value:.3g} [{speedup.low:.3g}, {speedup.high:.3g}]"
