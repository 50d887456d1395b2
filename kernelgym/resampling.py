"""Means over tasks with bootstrap intervals; the same resamples for all who have as many tasks."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["Estimate", "Resamples"]

_RESAMPLES = 1000
_SEED = 20
_QUANTILES = (0.025, 0.975)

Array = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A score with its 95 % interval."""

    value: float
    low: float
    high: float


class Resamples:
    """Bootstrap resamples of a number of tasks, from a fixed seed.

    Args:
        count: Number of tasks, at least 1.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._weights = _weights(count)

    def means(self, columns: Sequence[Sequence[float]]) -> list[Estimate]:
        """The mean of each column; a column has one number a task."""
        values = np.asarray(columns, dtype=np.float64).T
        sampled = self._weights @ values / self._count
        return _estimates(values.mean(axis=0), sampled)

    def mean(
        self, values: Sequence[float | None], deviations: Sequence[float] | None = None
    ) -> Estimate | None:
        """The mean of those that are known; None where none is.

        Args:
            values: One number a task, or None.
            deviations: Standard deviation of each by its measurement.
        """
        known = np.array([value is not None for value in values], dtype=np.float64)
        if not known.any():
            return None
        filled = np.array([0.0 if value is None else value for value in values])
        counts = self._weights @ known
        sums = self._weights @ filled
        if deviations is not None:
            variances = np.square(np.asarray(deviations, dtype=np.float64)) * known
            sums += _noise(len(sums)) * np.sqrt(_squared_weights(self._count) @ variances)
        usable = counts > 0  # a resample may hold none of the known tasks
        sampled = sums[usable] / counts[usable]
        value = np.array([filled.sum() / known.sum()])
        return _estimates(value, sampled[:, None])[0]


def _estimates(values: Array, sampled: Array) -> list[Estimate]:
    low, high = np.quantile(sampled, _QUANTILES, axis=0)
    # A value may lie outside of few resamples' quantiles; an interval always holds it.
    return [
        Estimate(float(v), float(min(lower, v)), float(max(upper, v)))
        for v, lower, upper in zip(values, low, high, strict=True)
    ]


@functools.lru_cache(maxsize=16)
def _weights(count: int) -> Array:
    """How often each task is in each resample, of shape (resamples, count)."""
    rng = np.random.default_rng(_SEED)
    drawn = rng.multinomial(count, np.full(count, 1.0 / count), size=_RESAMPLES)
    return drawn.astype(np.float64)


@functools.lru_cache(maxsize=16)
def _squared_weights(count: int) -> Array:
    return np.square(_weights(count))


@functools.lru_cache(maxsize=1)
def _noise(count: int) -> Array:
    return np.random.default_rng(_SEED + 1).standard_normal(count)
