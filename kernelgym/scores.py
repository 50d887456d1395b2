"""Scores of a set of tasks, with intervals: what a run, or a leaderboard's entry, came to.

An interval is a bootstrap over tasks (1,000 resamples, the same ones for whoever has as many tasks),
to which the measurement's own uncertainty of each speedup is added: it says how far the figure would
move on other tasks like these, and on another day. Resamples come from a fixed seed, so that a score
is the same wherever it is computed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from kernelgym.errors import RecordError
from kernelgym.judge.verdict import Measurement, Outcome, Speedup, Verdict
from kernelgym.resampling import Estimate, Resamples
from kernelgym.rewards import FASTER

__all__ = [
    "AT_LIGHT",
    "THRESHOLDS",
    "BaselineScores",
    "Estimate",
    "SetScores",
    "TaskScore",
    "by_level",
    "clean_tasks",
    "in_a_line",
    "score_set",
    "task_score",
]

AT_LIGHT = 0.9
"""From this fraction of the speed of light on, a kernel is at the limit of physics."""

THRESHOLDS = (0.0, 0.5, 0.8, 1.0, 1.05, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0)
"""Where the fast_p curve is sampled; fast_0 is the correct rate."""

_TWO_SIDED_95 = 1.959964
_LEVELS = ("L1", "L2", "L3")


@dataclasses.dataclass(frozen=True)
class TaskScore:
    """What one task of an entry came to: the verdict in a line.

    Attributes:
        task: Task id.
        outcome: The verdict's; None where there is no verdict.
        reason: The verdict's.
        seconds: Time of one call of a correct candidate.
        eager: Speedup against eager of a correct candidate.
        compile: The same against `torch.compile`.
        light_fraction: Of a correct candidate, see `kernelgym.judge.verdict.Timing`.
        own: Share of device time in code that the candidate brought, 0 to 1.
        library: Share in libraries that it called.
        memory_ratio: Peak memory over eager's.
        energy_ratio: Joules over eager's.
    """

    task: str
    outcome: Outcome | None = None
    reason: str = ""
    seconds: Measurement | None = None
    eager: Speedup | None = None
    compile: Speedup | None = None
    light_fraction: float | None = None
    own: float | None = None
    library: float | None = None
    memory_ratio: float | None = None
    energy_ratio: float | None = None

    @property
    def correct(self) -> bool:
        """Whether the verdict is `correct`."""
        return self.outcome is Outcome.CORRECT


@dataclasses.dataclass(frozen=True)
class BaselineScores:
    """A set of tasks against one baseline.

    Every share is of all tasks of the set, solved or not.

    Attributes:
        fast: (p, share of tasks that are correct with a speedup above p), p from `THRESHOLDS`:
            KernelBench's fast_p.
        faster: Share whose interval lies above 1.
        faster_by_5_percent: Share whose interval lies above 1.05, as rewards count it.
        geomean_correct: Geometric mean of the speedups of correct candidates; None without any.
        geomean_all: The same over all tasks, where one without a correct candidate counts 1.0.
    """

    fast: tuple[tuple[float, Estimate], ...]
    faster: Estimate
    faster_by_5_percent: Estimate
    geomean_correct: Estimate | None
    geomean_all: Estimate


@dataclasses.dataclass(frozen=True)
class SetScores:
    """What a set of tasks came to.

    Attributes:
        tasks: Number of tasks in the set.
        attempted: How many have a verdict.
        rejected: How many of them are `rejected`.
        correct: Share of correct ones, of all.
        eager: Against eager; None where no verdict compares with it.
        compile: Against `torch.compile`.
        at_light: Share of tasks at `AT_LIGHT` of the speed of light or above.
        light_fraction: Mean fraction of the speed of light, over correct candidates that have one.
        own: Mean share of device time in own code, over correct candidates where it is known.
        library: Mean share in libraries.
        memory_ratio: Geometric mean of peak memory over eager's, where measured.
        energy_ratio: Geometric mean of joules over eager's, where measured.
    """

    tasks: int
    attempted: int
    rejected: int
    correct: Estimate
    eager: BaselineScores | None
    compile: BaselineScores | None
    at_light: Estimate
    light_fraction: Estimate | None
    own: Estimate | None
    library: Estimate | None
    memory_ratio: Estimate | None
    energy_ratio: Estimate | None


def task_score(task: str, verdict: Verdict | None) -> TaskScore:
    """A verdict in a line.

    Raises:
        RecordError: A speedup is not above 0, or lies outside of its own interval.
    """
    if verdict is None:
        return TaskScore(task)
    if not verdict.correct:
        return TaskScore(task, verdict.outcome, verdict.reason)
    timing, coverage = verdict.timing, verdict.coverage
    memory = energy = None
    if verdict.peak_memory and verdict.peak_memory_eager:
        memory = verdict.peak_memory / verdict.peak_memory_eager
    if verdict.energy and verdict.energy_eager and verdict.energy_eager.median > 0:
        energy = verdict.energy.median / verdict.energy_eager.median
    return TaskScore(
        task=task,
        outcome=verdict.outcome,
        reason=verdict.reason,
        seconds=timing.candidate if timing else None,
        eager=_positive(task, timing.speedup_eager) if timing else None,
        compile=_positive(task, timing.speedup_compile) if timing else None,
        light_fraction=timing.light_fraction if timing else None,
        own=coverage.own if coverage else None,
        library=coverage.library if coverage else None,
        memory_ratio=memory,
        energy_ratio=energy,
    )


def score_set(tasks: Sequence[TaskScore]) -> SetScores:
    """Scores one set of tasks, at least one."""
    resamples = Resamples(len(tasks))
    at_light = [t.correct and (t.light_fraction or 0.0) >= AT_LIGHT for t in tasks]
    correct, limit = resamples.means([[t.correct for t in tasks], at_light])
    return SetScores(
        tasks=len(tasks),
        attempted=sum(t.outcome is not None for t in tasks),
        rejected=sum(t.outcome is Outcome.REJECTED for t in tasks),
        correct=correct,
        eager=_against(resamples, tasks, [t.eager for t in tasks]),
        compile=_against(resamples, tasks, [t.compile for t in tasks]),
        at_light=limit,
        light_fraction=resamples.mean([t.light_fraction for t in tasks]),
        own=resamples.mean([t.own for t in tasks]),
        library=resamples.mean([t.library for t in tasks]),
        memory_ratio=_exponential(resamples.mean([_log(t.memory_ratio) for t in tasks])),
        energy_ratio=_exponential(resamples.mean([_log(t.energy_ratio) for t in tasks])),
    )


def by_level(tasks: Sequence[TaskScore]) -> dict[str, SetScores]:
    """Scores by set: `"all"`, and `"L1"`, `"L2"`, `"L3"` as far as there are such tasks."""
    sets = {"all": tasks}
    for level in _LEVELS:
        sets[level] = [t for t in tasks if t.task.startswith(f"{level}/")]
    return {name: score_set(members) for name, members in sets.items() if members}


def in_a_line(scores: SetScores) -> str:
    """Such as `"3 of 4 correct, 1 faster than eager, geometric mean 1.20x"`."""
    text = f"{scores.correct.value * scores.tasks:.0f} of {scores.tasks} correct"
    if scores.eager is not None:
        faster = f"{scores.eager.faster.value * scores.tasks:.0f} faster than eager"
        text += f", {faster}, geometric mean {scores.eager.geomean_all.value:.2f}x"
    return text


def clean_tasks(tasks: Sequence[str], protocol: str) -> tuple[str, ...]:
    """Those of KernelBench's tasks on which no trivial answer passes a protocol's rule.

    Tasks from elsewhere have not been audited and are left out.
    """
    from kernelgym.judge.audit_records import clean_ids

    clean = frozenset(clean_ids(protocol))
    return tuple(task for task in tasks if task in clean)


def _against(
    resamples: Resamples, tasks: Sequence[TaskScore], speedups: Sequence[Speedup | None]
) -> BaselineScores | None:
    """The scores against one baseline; None where nothing was compared with it."""
    if not any(speedups):
        return None
    # A correct candidate that was not compared is worth what a failure is: 1.0.
    values = [s.value if s else 1.0 for s in speedups]
    lows = [s.low if s else 0.0 for s in speedups]
    solved = [t.correct for t in tasks]
    columns = [
        *([c and value > p for c, value in zip(solved, values, strict=True)] for p in THRESHOLDS),
        [low > 1.0 for low in lows],
        [low > FASTER for low in lows],
    ]
    *fast, faster, faster_by_5_percent = resamples.means(columns)
    logs = [math.log(value) for value in values]
    deviations = [_log_deviation(s) for s in speedups]
    compared = [log if s else None for log, s in zip(logs, speedups, strict=True)]
    over_all = _exponential(resamples.mean(logs, deviations))
    assert over_all is not None  # every task has a number
    return BaselineScores(
        fast=tuple(zip(THRESHOLDS, fast, strict=True)),
        faster=faster,
        faster_by_5_percent=faster_by_5_percent,
        geomean_correct=_exponential(resamples.mean(compared, deviations)),
        geomean_all=over_all,
    )


def _log_deviation(speedup: Speedup | None) -> float:
    """Standard deviation of a speedup's logarithm, by its interval."""
    if speedup is None:
        return 0.0
    return (math.log(speedup.high) - math.log(speedup.low)) / (2 * _TWO_SIDED_95)


def _exponential(estimate: Estimate | None) -> Estimate | None:
    if estimate is None:
        return None
    return Estimate(math.exp(estimate.value), math.exp(estimate.low), math.exp(estimate.high))


def _log(value: float | None) -> float | None:
    return None if value is None else math.log(value)


def _positive(task: str, speedup: Speedup | None) -> Speedup | None:
    """A speedup that has a logarithm.

    Raises:
        RecordError: It has none, or its interval does not hold it.
    """
    if speedup is not None and not 0 < speedup.low <= speedup.value <= speedup.high:
        raise RecordError(
            f"{task}: expected a speedup above 0 inside its interval, got {speedup.value} in "
            f"[{speedup.low}, {speedup.high}]"
        )
    return speedup
