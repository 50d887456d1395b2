"""Axes of a plot: numbers to pixels, and where the ticks stand."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

__all__ = ["Axis", "si"]

_STEPS = (1.0, 2.0, 5.0, 10.0)


@dataclasses.dataclass(frozen=True)
class Axis:
    """One axis.

    Attributes:
        low: Value at `start`; above 0 on a logarithmic axis.
        high: Value at `end`, more than `low`.
        start: Pixel of `low`.
        end: Pixel of `high`.
        logarithmic: Whether equal distances are equal ratios.
    """

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    @classmethod
    def around(
        cls, values: Iterable[float], start: float, end: float, *, logarithmic: bool = False
    ) -> Axis:
        """An axis that holds all of some finite values (above 0 if logarithmic), with a margin."""
        known = list(values)
        low, high = min(known), max(known)
        if logarithmic:
            return cls(low / 1.6, high * 1.6, start, end, True)
        margin = 0.08 * (high - low) or 0.5
        return cls(low - margin if low else 0.0, high + margin, start, end)

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        if self.logarithmic:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Between two and about eight round values inside the axis."""
        if not self.logarithmic or self.high / self.low < 8:
            return self._even()
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        factors = (1.0, 2.0, 5.0) if len(decades) <= 3 else (1.0,)
        every = max(1, len(decades) // 7)
        candidates = [10.0**decade * factor for decade in decades[::every] for factor in factors]
        return [value for value in candidates if self.low <= value <= self.high]

    def _even(self) -> list[float]:
        rough = (self.high - self.low) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in _STEPS if factor * power >= rough * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [index * step for index in range(first, last + 1) if index or not self.logarithmic]


def si(value: float, unit: str) -> str:
    """A value with an SI prefix, such as `"40 GB/s"`."""
    for prefix, factor in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= factor * 0.9995:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"
