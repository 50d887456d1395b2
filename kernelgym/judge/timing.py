"""From batches of timed calls to a median with its interval, and to a speedup with its own.

A batch is some calls in a row; candidate and baseline take turns batch by batch, in random order,
so that slow changes of the machine (heat, clocks) meet both. The statistic of a batch is its
median, that of all its batches' the median again. The 95 % interval is a bootstrap over batches, or
what differs between one judgement and the next, whichever is wider: batches of one run cannot show
the latter, so it is calibrated for each card (`kernelgym calibrate`).

There are at least 20 batches, whatever they look like: an interval that is looked at after each
batch, until it is narrow, covers the truth less often than it says. Beyond those, some more are
taken while the interval is wide and there is time.
"""

from __future__ import annotations

import dataclasses
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np

from kernelgym.judge.verdict import Measurement, Speedup

__all__ = [
    "UNCALIBRATED",
    "Plan",
    "Spread",
    "SpreadPoint",
    "measurement",
    "plan",
    "scaled",
    "scaled_speedup",
    "speedup",
    "take_turns",
]

_RESAMPLES = 1000
_TWO_SIDED_95 = 1.96
_BUDGET_SECONDS = 0.2
_BATCHES, _FEWEST_BATCHES, _MOST_BATCHES, _MORE_BATCHES = 20, 5, 60, 10
_MOST_CALLS = 10
_SLOW_BUDGET_SECONDS = 4.0
_MORE_TIME = 0.5
_WIDE = 0.01

Batches = Sequence[Sequence[float]]


class SpreadPoint(NamedTuple):
    """Relative standard deviations, from one run to the next, for kernels of one duration.

    Attributes:
        seconds: The duration.
        median: Of the median time.
        ratio: Of a speedup; a part of what moves the two times moves both.
    """

    seconds: float
    median: float
    ratio: float


@dataclasses.dataclass(frozen=True)
class Spread:
    """What differs between runs, by duration: between its points on a scale of logarithms.

    Attributes:
        points: At least one, in order of duration.
    """

    points: tuple[SpreadPoint, ...]

    def of_median(self, seconds: float) -> float:
        """Relative standard deviation of a median of that duration."""
        return self._at(seconds, [point.median for point in self.points])

    def of_ratio(self, seconds: float) -> float:
        """The same of a speedup whose faster side takes that long."""
        return self._at(seconds, [point.ratio for point in self.points])

    def _at(self, seconds: float, values: Sequence[float]) -> float:
        places = [math.log(point.seconds) for point in self.points]
        return float(np.interp(math.log(seconds), places, values))


UNCALIBRATED = Spread(
    (
        SpreadPoint(3e-6, 0.006, 0.008),
        SpreadPoint(2e-5, 0.002, 0.003),
        SpreadPoint(1.3e-4, 0.001, 0.0015),
    )
)
"""For a card that nobody has calibrated: what was seen on an H200, and some more."""


class Plan(NamedTuple):
    """How many batches each side gets, and how many calls are in one."""

    batches: int
    calls: int


def plan(pair_seconds: float) -> Plan:
    """Spends about 0.2 s: 20 batches, fewer only where those would take more than 4 s.

    Args:
        pair_seconds: Wall-clock seconds that a call of each side takes, with all that belongs to it.
    """
    if pair_seconds * _BATCHES > _SLOW_BUDGET_SECONDS:
        return Plan(max(_FEWEST_BATCHES, int(_SLOW_BUDGET_SECONDS / pair_seconds)), 1)
    calls = int(_BUDGET_SECONDS / (_BATCHES * max(pair_seconds, 1e-6)))
    return Plan(_BATCHES, min(max(calls, 1), _MOST_CALLS))


def take_turns(
    sides: Mapping[str, Callable[[], float]],
    planned: Plan,
    rng: random.Random,
    *,
    between: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, list[list[float]]]:
    """Seconds of each call of each side, batch by batch; the sides of one index were neighbours.

    Args:
        sides: Each makes one call and gives its seconds.
        planned: How many batches and calls. More batches follow while some side's are noisy and
            less than half the time of the planned ones has been spent on more.
        rng: Orders the sides within each turn.
        between: Called after each batch.
        clock: Tells the time.
    """
    taken: dict[str, list[list[float]]] = {name: [] for name in sides}

    def turn() -> None:
        order = list(sides)
        rng.shuffle(order)
        for name in order:
            taken[name].append([sides[name]() for _ in range(planned.calls)])
            between()

    began = clock()
    for _ in range(planned.batches):
        turn()
    until = clock() + _MORE_TIME * (clock() - began)
    if planned.batches < _BATCHES:
        return taken
    while len(next(iter(taken.values()))) < _MOST_BATCHES and clock() < until:
        if all(_is_narrow(batches) for batches in taken.values()):
            break
        for _ in range(_MORE_BATCHES):
            turn()
    return taken


def measurement(
    batches: Batches,
    rng: random.Random,
    *,
    spread: Spread = UNCALIBRATED,
    host_span: float | None = None,
) -> Measurement:
    """The time of one call from batches of calls, in seconds.

    Args:
        batches: Seconds of each call, batch by batch; none is empty.
        rng: For the bootstrap.
        spread: What differs between runs on this card.
        host_span: Median host seconds of a call, where known.
    """
    medians = np.array([median(batch) for batch in batches])
    value = float(np.median(medians))
    found = np.median(medians[_chosen(len(medians), rng)], axis=1)
    low, high = _interval(value, found, spread.of_median(value))
    return Measurement(value, low, high, len(batches), "measured", host_span)


def speedup(
    baseline: Batches, candidate: Batches, rng: random.Random, *, spread: Spread = UNCALIBRATED
) -> Speedup:
    """Baseline time over candidate time; batches of one index were neighbours in time."""
    above = np.array([median(batch) for batch in baseline])
    below = np.array([median(batch) for batch in candidate])
    value = float(np.median(above) / np.median(below))
    chosen = _chosen(len(above), rng)  # the same batches of both
    found = np.median(above[chosen], axis=1) / np.median(below[chosen], axis=1)
    faster = float(min(np.median(above), np.median(below)))
    return Speedup(value, *_interval(value, found, spread.of_ratio(faster)))


def scaled(live: Measurement, ratio: Speedup) -> Measurement:
    """A stored baseline's time now: the anchor's live time times the stored ratio of the two."""
    value = live.median * ratio.value
    low, high = _product((live.median, live.low, live.high), (ratio.value, ratio.low, ratio.high))
    return Measurement(value, low, high, live.batches, "stored")


def scaled_speedup(anchor: Speedup, ratio: Speedup) -> Speedup:
    """The speedup over a stored baseline: that over its anchor times the stored ratio."""
    low, high = _product(
        (anchor.value, anchor.low, anchor.high), (ratio.value, ratio.low, ratio.high)
    )
    return Speedup(anchor.value * ratio.value, low, high)


def _product(
    one: tuple[float, float, float], other: tuple[float, float, float]
) -> tuple[float, float]:
    """The interval of a product of two independent values, each with its own: (value, low, high)."""
    value = one[0] * other[0]
    down = math.hypot(*(1.0 - low / middle for middle, low, _ in (one, other)))
    up = math.hypot(*(high / middle - 1.0 for middle, _, high in (one, other)))
    return value * max(1.0 - down, 0.0), value * (1.0 + up)


def _chosen(count: int, rng: random.Random) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Indices of the bootstrap's resamples, one a row."""
    generator = np.random.default_rng(rng.getrandbits(64))
    return generator.integers(0, count, (_RESAMPLES, count))


def _interval(
    value: float, resampled: np.ndarray[tuple[int], np.dtype[np.float64]], between: float
) -> tuple[float, float]:
    low, high = (float(end) for end in np.quantile(resampled, (0.025, 0.975)))
    # What differs between whole judgements has the scatter of their batches in it already.
    usual = _TWO_SIDED_95 * between * value
    return max(value - max(value - low, usual), 0.0), value + max(high - value, usual)


def _is_narrow(batches: Batches) -> bool:
    """Whether the 95 % interval of the median would be about 1 % wide, were the noise normal."""
    medians = [median(batch) for batch in batches]
    middle = median(medians)
    deviation = 1.4826 * median([abs(value - middle) for value in medians])
    # The median of n values has 1.25 times the error of their mean.
    half = _TWO_SIDED_95 * 1.25 * deviation / math.sqrt(len(medians))
    return 2 * half <= _WIDE * middle
