"""`Board`: what must be equal for two results to share a table, and how a board is named."""

from __future__ import annotations

import dataclasses
import enum
import re

from kernelgym import tasks
from kernelgym.config import PRECISIONS, PROTOCOLS, RULESETS, SIZES
from kernelgym.errors import UsageError

__all__ = ["EMULATOR", "TASK_SETS", "Board", "Budget", "slug_of"]

TASK_SETS = ("kernelbench", "level1", "level2", "level3")
"""Sets of tasks that a board can be about: all 250, or one level."""

EMULATOR = "emulator"
"""The device whose times are modelled, as verdicts name it."""


class Budget(str, enum.Enum):
    """How many verdicts an entry may have asked for, for any one task."""

    ONE = "1"
    TEN = "10"
    HUNDRED = "100"
    OPEN = "open"

    def __str__(self) -> str:
        """The value, so that `f"{budget}"` reads the same on every Python."""
        return self.value

    @property
    def limit(self) -> int | None:
        """The most verdicts for a task; None without a limit."""
        return None if self is Budget.OPEN else int(self.value)

    @classmethod
    def of(cls, verdicts: int | None) -> Budget:
        """The smallest class that holds so many verdicts for a task; `OPEN` where unknown."""
        if verdicts is not None:
            for budget in (cls.ONE, cls.TEN, cls.HUNDRED):
                if verdicts <= int(budget.value):
                    return budget
        return cls.OPEN


@dataclasses.dataclass(frozen=True)
class Board:
    """What must be equal for two results to share a table.

    Attributes:
        device: The device's model as verdicts name it (`"NVIDIA H200"`), or `"emulator"`.
        protocol: See `kernelgym.JudgeConfig`.
        ruleset: See there.
        precision: See there.
        task_set: One of `TASK_SETS`.
        size: Which shapes: `"small"`, `"medium"` or `"full"`.
        budget: The class of verdicts for a task.

    Raises:
        UsageError: A value is none of those accepted.
    """

    device: str
    protocol: str
    ruleset: str
    precision: str
    task_set: str
    size: str
    budget: Budget

    def __post_init__(self) -> None:
        """Refuse what no judge could have judged under."""
        for name, accepted in (
            ("protocol", PROTOCOLS),
            ("ruleset", RULESETS),
            ("precision", PRECISIONS),
            ("task_set", TASK_SETS),
            ("size", SIZES[1:]),
        ):
            value = getattr(self, name)
            if value not in accepted:
                raise UsageError(f"{name}: expected one of {', '.join(accepted)}, got {value!r}")
        if not slug_of(self.device):
            raise UsageError(f"device: expected the name of a model, got {self.device!r}")

    @property
    def slug(self) -> str:
        """The name of its folder and in addresses: lower case, digits and dashes."""
        return "--".join(
            (
                slug_of(self.device),
                self.protocol.replace("_", "-"),
                self.ruleset,
                self.precision,
                f"{self.task_set}-{self.size}",
                self.budget.value,
            )
        )

    @property
    def title(self) -> str:
        """For readers, in a line."""
        budget = "open budget" if self.budget is Budget.OPEN else f"{self.budget} verdicts a task"
        if self.budget is Budget.ONE:
            budget = "1 verdict a task"
        return (
            f"{self.device}, {self.task_set} ({self.size}), {self.protocol} protocol, "
            f"{self.ruleset} rules, {self.precision} precision, {budget}"
        )

    @property
    def modelled(self) -> bool:
        """Whether its times are modelled rather than measured."""
        return self.device == EMULATOR

    @property
    def tasks(self) -> tuple[str, ...]:
        """The ids of its tasks, in order; each counts, solved or not."""
        if self.task_set == "kernelbench":
            return tasks.ids()
        return tasks.ids(int(self.task_set.removeprefix("level")))


def slug_of(text: str) -> str:
    """Text as lower-case letters and digits, with one dash for whatever lies between."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
