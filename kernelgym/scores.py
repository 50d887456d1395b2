"""Scores of a run, told twice: over all tasks, and over the clean ones of the audit."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from kernelgym.judge.verdict import Verdict

__all__ = ["Score", "clean_tasks", "score"]


@dataclasses.dataclass(frozen=True)
class Score:
    """What a set of tasks came to; speedups are against eager, the best verdict of each task.

    Attributes:
        tasks: Number of tasks.
        correct: How many have a correct kernel.
        faster: How many of them are faster than eager beyond their interval.
        geometric_mean: Of the speedups over all tasks, where a task without a correct kernel counts
            1.0; None without tasks.
    """

    tasks: int
    correct: int
    faster: int
    geometric_mean: float | None

    def __str__(self) -> str:
        """In a line."""
        text = f"{self.correct} of {self.tasks} correct, {self.faster} faster than eager"
        if self.geometric_mean is not None:
            text += f", geometric mean {self.geometric_mean:.2f}x"
        return text


def score(best: Mapping[str, Verdict | None]) -> Score:
    """Scores the best verdict of each task.

    Args:
        best: Task id to its best verdict, or None where there is none.
    """
    speedups = [_speedup(verdict) for verdict in best.values()]
    correct = sum(verdict is not None and verdict.correct for verdict in best.values())
    faster = sum(low > 1.0 for _, low in speedups)
    logs = [math.log(value) for value, _ in speedups]
    mean = math.exp(math.fsum(logs) / len(logs)) if logs else None
    return Score(len(best), correct, faster, mean)


def clean_tasks(tasks: Sequence[str], protocol: str) -> tuple[str, ...]:
    """Those of KernelBench's tasks on which no trivial answer passes a protocol's rule.

    Tasks from elsewhere have not been audited and are left out.
    """
    from kernelgym.judge.audit_records import clean_ids

    clean = frozenset(clean_ids(protocol))
    return tuple(task for task in tasks if task in clean)


def _speedup(verdict: Verdict | None) -> tuple[float, float]:
    """Value and low end of the speedup against eager; 1.0 where there is none."""
    timing = verdict.timing if verdict is not None and verdict.correct else None
    if timing is None or timing.speedup_eager is None:
        return 1.0, 1.0
    return timing.speedup_eager.value, timing.speedup_eager.low
