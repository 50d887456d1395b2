"""Who comes before whom: by geometric mean over all tasks, and equal where intervals overlap."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from kernelgym.resampling import Estimate

__all__ = ["Ranked", "rank"]

RowT = TypeVar("RowT")


@dataclasses.dataclass(frozen=True)
class Ranked(Generic[RowT]):
    """A row with its place: 1 for the best; None for one that is not ranked."""

    row: RowT
    place: int | None


def rank(
    rows: Sequence[RowT],
    score: Callable[[RowT], Estimate | None],
    counts: Callable[[RowT], bool] = lambda row: True,
) -> list[Ranked[RowT]]:
    """Orders rows by score, the highest first, and gives each its place.

    Overlap is not transitive: A may overlap B and B overlap C while A lies clear of C. So places
    are given group by group. The best row leads the first group; whoever's interval reaches up to
    the leader's interval shares its place; the first that does not leads the next group, and its
    place is one more than the number of rows before it. Two rows of one place are thus never shown
    to differ from their leader, and every leader lies clear of the leader before.

    Args:
        rows: The rows of one board.
        score: A row's score, or None where it has none.
        counts: Whether a row takes part; the others are listed where their score puts them, without
            a place and without moving anybody.

    Returns:
        All rows; those without a score come last, in the order given.
    """
    scored = [(row, value) for row in rows if (value := score(row)) is not None]
    ordered = sorted(scored, key=lambda pair: -pair[1].value)
    ranked: list[Ranked[RowT]] = []
    leader: Estimate | None = None
    place = before = 0
    for row, value in ordered:
        if not counts(row):
            ranked.append(Ranked(row, None))
            continue
        if leader is None or value.high < leader.low:
            leader, place = value, before + 1
        before += 1
        ranked.append(Ranked(row, place))
    ranked.extend(Ranked(row, None) for row in rows if score(row) is None)
    return ranked
