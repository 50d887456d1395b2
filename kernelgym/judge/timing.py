"""From batches of timed calls to a median with its interval, and to a speedup with its own.

A batch is some calls in a row; candidate and baseline take turns batch by batch, so that slow
changes of the machine (heat, clocks) meet both. The statistic of a batch is its median, that of all
its batches' the median again. The 95 % interval is a bootstrap over batches, widened by a term for
what differs between one run and the next, which batches of one run cannot show.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

from kernelgym.judge.verdict import Measurement, Speedup

__all__ = ["BETWEEN_RUNS", "Plan", "measurement", "plan", "speedup"]

BETWEEN_RUNS = 0.002
"""Standard deviation, relative, of the median from one run to the next. A constant for now: it was
seen on one H200 and has not been calibrated on others."""

_RESAMPLES = 1000
_TWO_SIDED_95 = 1.96
_BUDGET_SECONDS = 1.0
_BATCHES, _FEWEST_BATCHES = 20, 5
_MOST_CALLS = 10
_SLOW_BUDGET_SECONDS = 5.0

Batches = Sequence[Sequence[float]]


class Plan(NamedTuple):
    """How many batches each side gets, and how many calls are in one."""

    batches: int
    calls: int


def plan(pair_seconds: float) -> Plan:
    """Spends about a second: 20 batches, fewer only where one call takes a quarter of a second.

    Args:
        pair_seconds: Wall-clock seconds that a call of each side takes, with all that belongs to it.
    """
    if pair_seconds * _BATCHES > _SLOW_BUDGET_SECONDS:
        return Plan(max(_FEWEST_BATCHES, int(_SLOW_BUDGET_SECONDS / pair_seconds)), 1)
    calls = int(_BUDGET_SECONDS / (_BATCHES * max(pair_seconds, 1e-6)))
    return Plan(_BATCHES, min(max(calls, 1), _MOST_CALLS))


def measurement(
    batches: Batches, rng: random.Random, *, host_span: float | None = None
) -> Measurement:
    """The time of one call from batches of calls, in seconds.

    Args:
        batches: Seconds of each call, batch by batch; none is empty.
        rng: For the bootstrap.
        host_span: Median host seconds of a call, where known.
    """
    medians = [median(batch) for batch in batches]
    value = median(medians)
    low, high = _interval(value, lambda chosen: median([medians[i] for i in chosen]), medians, rng)
    return Measurement(value, low, high, len(batches), "measured", host_span)


def speedup(baseline: Batches, candidate: Batches, rng: random.Random) -> Speedup:
    """Baseline time over candidate time; batches of one index were neighbours in time."""
    above = [median(batch) for batch in baseline]
    below = [median(batch) for batch in candidate]
    pairs = list(zip(above, below, strict=True))

    def ratio(chosen: Sequence[int]) -> float:
        return median([pairs[i][0] for i in chosen]) / median([pairs[i][1] for i in chosen])

    value = ratio(range(len(pairs)))
    # Two medians, each with its own difference between runs.
    low, high = _interval(value, ratio, pairs, rng, between=math.sqrt(2) * BETWEEN_RUNS)
    return Speedup(value, low, high)


def _interval(
    value: float,
    statistic: Callable[[Sequence[int]], float],
    samples: Sequence[object],
    rng: random.Random,
    between: float = BETWEEN_RUNS,
) -> tuple[float, float]:
    count = len(samples)
    found = sorted(statistic(rng.choices(range(count), k=count)) for _ in range(_RESAMPLES))
    low, high = found[int(0.025 * _RESAMPLES)], found[int(0.975 * _RESAMPLES) - 1]
    widening = _TWO_SIDED_95 * between * value
    return (
        value - math.hypot(min(low - value, 0.0), widening),
        value + math.hypot(max(high - value, 0.0), widening),
    )
