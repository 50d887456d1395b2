"""Integer index arithmetic: linear forms over digits of loop variables, with exact simplification.

A loop variable `i` of extent `A * B` has the digits `i / B` and `i % B`. An index is a sum of
digits times coefficients, plus a constant. Offsets of contiguous accesses therefore simplify to the
loop variable itself, however the tensor was reshaped in between.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

__all__ = ["Digit", "Index", "linear", "unravel", "variable"]


@dataclasses.dataclass(frozen=True, order=True)
class Digit:
    """The value `(name / div) % mod`.

    Attributes:
        name: A C++ expression, at least 0 and below `extent` wherever the access is valid.
        extent: One more than the greatest value of `name`.
        div: Divisor, at least 1.
        mod: One more than the digit's greatest value.
    """

    name: str
    extent: int
    div: int
    mod: int

    def text(self) -> str:
        """The digit in C++, without parentheses around it."""
        text = self.name if self.div == 1 else f"{self.name} / {self.div}"
        return text if self.div * self.mod >= self.extent else f"{text} % {self.mod}"


class Index:
    """An integer expression: `constant` plus the sum of coefficients times digits. Immutable."""

    def __init__(self, terms: Iterable[tuple[Digit, int]] = (), constant: int = 0) -> None:
        self.terms = _merged(terms)
        self.constant = constant

    @property
    def greatest(self) -> int:
        """The greatest value that it can have."""
        return self.constant + sum(max(c, 0) * (d.mod - 1) for d, c in self.terms)

    @property
    def least(self) -> int:
        """The least value that it can have."""
        return self.constant + sum(min(c, 0) * (d.mod - 1) for d, c in self.terms)

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return Index(self.terms, self.constant + other)
        return Index([*self.terms, *other.terms], self.constant + other.constant)

    def __mul__(self, factor: int) -> Index:
        return Index([(d, c * factor) for d, c in self.terms], self.constant * factor)

    def __floordiv__(self, divisor: int) -> Index:
        return self._divided(divisor)[0]

    def __mod__(self, divisor: int) -> Index:
        return self._divided(divisor)[1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Index) and (self.terms, self.constant) == (
            other.terms,
            other.constant,
        )

    def __hash__(self) -> int:
        return hash((self.terms, self.constant))

    def __repr__(self) -> str:
        return f"Index({self.text()})"

    def uses(self, name: str) -> bool:
        """Whether a loop variable of that name occurs in it, plainly or inside an expression."""
        return any(
            name in d.name.replace("(", " ").replace(")", " ").split() for d, _ in self.terms
        )

    def text(self) -> str:
        """The expression in C++; put parentheses around it where it is not alone."""
        parts: list[str] = []
        for digit, coefficient in sorted(self.terms, key=lambda t: -abs(t[1])):
            text = digit.text()
            size = abs(coefficient)
            if size != 1:
                text = f"{text} * {size}" if text == digit.name else f"({text}) * {size}"
            parts.append(f"- {text}" if coefficient < 0 else f"+ {text}")
        if self.constant or not parts:
            sign = "-" if self.constant < 0 else "+"
            parts.append(f"{sign} {abs(self.constant)}")
        joined = " ".join(parts)
        return joined[2:] if joined.startswith("+ ") else "-" + joined[2:]

    def _divided(self, divisor: int) -> tuple[Index, Index]:
        """Quotient and remainder by a divisor of at least 1; exact where the value is not negative."""
        if divisor == 1:
            return self, Index()
        quotient: list[tuple[Digit, int]] = []
        rest: list[tuple[Digit, int]] = []
        for digit, coefficient in self.terms:
            if coefficient % divisor == 0:
                quotient.append((digit, coefficient // divisor))
            else:
                rest.append((digit, coefficient))
        whole, constant = divmod(self.constant, divisor)
        remainder = Index(rest, constant)
        if remainder.least < 0:
            return self._opaque(divisor)
        if remainder.greatest >= divisor:
            split: list[tuple[Digit, int]] = []
            for digit, coefficient in remainder.terms:
                ratio = divisor // coefficient
                if 1 < ratio < digit.mod and divisor % coefficient == 0 and digit.mod % ratio == 0:
                    high = Digit(digit.name, digit.extent, digit.div * ratio, digit.mod // ratio)
                    quotient.append((high, 1))
                    split.append((Digit(digit.name, digit.extent, digit.div, ratio), coefficient))
                else:
                    split.append((digit, coefficient))
            remainder = Index(split, constant)
        if remainder.greatest >= divisor:
            return self._opaque(divisor)
        return Index(quotient, whole), remainder

    def _opaque(self, divisor: int) -> tuple[Index, Index]:
        extent = max(self.greatest + 1, 1)
        if extent <= divisor and self.least >= 0:
            return Index(), self
        name = f"({self.text()})"
        high = Digit(name, extent, divisor, max(math.ceil(extent / divisor), 1))
        return Index([(high, 1)]), Index([(Digit(name, extent, 1, divisor), 1)])


def variable(name: str, extent: int) -> Index:
    """A loop variable that takes the values 0 to extent - 1."""
    return Index() if extent == 1 else Index([(Digit(name, extent, 1, extent), 1)])


def linear(indices: Sequence[Index], shape: Sequence[int]) -> Index:
    """The offset of an element in a contiguous tensor."""
    offset, stride = Index(), 1
    for index, size in zip(reversed(indices), reversed(shape), strict=True):
        offset = offset + index * stride
        stride *= size
    return offset


def unravel(offset: Index, shape: Sequence[int]) -> tuple[Index, ...]:
    """The indices of the element at an offset of a contiguous tensor; inverse of `linear`."""
    indices: list[Index] = []
    for size in reversed(shape):
        indices.append(offset % size)
        offset = offset // size
    return tuple(reversed(indices))


def _merged(terms: Iterable[tuple[Digit, int]]) -> tuple[tuple[Digit, int], ...]:
    """Adds up equal digits, and joins neighbouring digits of one variable to longer ones."""
    sums: dict[Digit, int] = {}
    for digit, coefficient in terms:
        if digit.mod > 1:
            sums[digit] = sums.get(digit, 0) + coefficient
    digits = {digit: coefficient for digit, coefficient in sums.items() if coefficient}
    joined = True
    while joined:
        joined = False
        for low in list(digits):
            for high in list(digits):
                if (
                    (high.name, high.extent) == (low.name, low.extent)
                    and high.div == low.div * low.mod
                    and digits[high] == digits[low] * low.mod
                ):
                    coefficient = digits.pop(low)
                    del digits[high]
                    both = Digit(low.name, low.extent, low.div, low.mod * high.mod)
                    digits[both] = digits.get(both, 0) + coefficient
                    joined = True
                    break
            if joined:
                break
    return tuple(sorted((d, c) for d, c in digits.items() if c))
