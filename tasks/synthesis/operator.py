"""`Operator`: one entry of the catalogue, with the rule that says what it may follow."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from kernelgym.tasks.synthesis.draft import Draft
from kernelgym.tasks.synthesis.values import Value

__all__ = ["Operator"]


@dataclasses.dataclass(frozen=True)
class Operator:
    """One operator.

    Attributes:
        name: Its name, that of torch where it has one.
        family: What it is grouped by: families make compositions, and compositions are split.
        accepts: The shape rule: whether it makes sense on a value.
        apply: Writes it into a draft whose value it accepts.
        last: Whether nothing may follow.
    """

    name: str
    family: str
    accepts: Callable[[Value], bool]
    apply: Callable[[Draft], None]
    last: bool = False
