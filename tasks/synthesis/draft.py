"""A composition being written: its statements, presets and inputs so far."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

from kernelgym.tasks.synthesis.values import Dim, Value

__all__ = ["Draft", "Input"]


@dataclasses.dataclass(frozen=True)
class Input:
    """One argument of `forward`.

    Attributes:
        name: The argument.
        expression: What `get_inputs` makes it with.
        law: The law that the judge draws it from, or None for the default.
    """

    name: str
    expression: str
    law: tuple[Any, ...] | None = None


class Draft:
    """Collects what operators add, and keeps names apart.

    Operators draw their options from `rng`, write into the draft, and leave `value` behind.

    Args:
        rng: Where options are drawn from.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.presets: dict[str, tuple[int, int]] = {}
        self.constants: dict[str, Any] = {}
        self.inputs: list[Input] = []
        self.init: list[str] = []
        self.forward: list[str] = []
        self.options: list[str] = []
        self.value: Value
        self._taken: set[str] = {"x", "self"}

    def dim(self, name: str, full: int, small: int) -> Dim:
        """A dimension with a preset of its own."""
        name = self._free(name)
        self.presets[name] = (full, small)
        return Dim(full, small, name)

    def constant(self, name: str, literal: Any) -> str:
        """A module-level constant, passed to the constructor; returns its name."""
        name = self._free(name)
        self.constants[name] = literal
        self.note(f"{name}={literal!r}")
        return name

    def start(self, value: Value) -> None:
        """Makes `x` the first input."""
        self.value = value
        self.inputs.append(Input("x", f"torch.rand({_shape(value.dims)})"))

    def second_input(
        self,
        name: str,
        dims: tuple[Dim, ...],
        *,
        expression: str = "torch.rand({})",
        law: tuple[Any, ...] | None = None,
    ) -> str:
        """Another argument of `forward`; every dimension must have a name. Returns its name."""
        name = self._free(name)
        self.inputs.append(Input(name, expression.format(_shape(dims)), law))
        return name

    def module(self, attribute: str, call: str) -> str:
        """Adds `self.attribute = call` to the constructor; returns `self.attribute`."""
        attribute = self._free(attribute)
        self.init.append(f"self.{attribute} = {call}")
        return f"self.{attribute}"

    def then(self, expression: str, value: Value) -> None:
        """Adds `x = expression` to the forward pass."""
        self.forward.append(expression)
        self.value = value

    def choose(self, name: str, options: tuple[Any, ...]) -> Any:
        """Draws an option; it becomes part of the composition's structure."""
        option = self.rng.choice(options)
        self.note(f"{name}={option!r}")
        return option

    def note(self, option: str) -> None:
        """Records an option for the structural hash."""
        self.options.append(option)

    def _free(self, name: str) -> str:
        candidate, count = name, 1
        while candidate in self._taken:
            count += 1
            candidate = f"{name}_{count}"
        self._taken.add(candidate)
        return candidate


def _shape(dims: tuple[Dim, ...]) -> str:
    names = [dim.name for dim in dims]
    assert all(names), "an input's dimensions all need a preset"
    return ", ".join(names)
