"""Scripts: a kernel's schedule as a handful of words, which render to real CUDA.

A script is a list of words. `k0`, `k1`, … says which kernel of the program the following words are
about, `KNOB=VALUE` sets one of its knobs, and the script ends with `run` (have the result judged)
or `stop` (end the episode). What is not set stays as it was.

Example:
    >>> read(("k0", "block=64", "width=1", "run"))
    Script(assignments=((0, 'block', 64), (0, 'width', 1)), stops=False)
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from kernelgym.agents.kernels.kernel import Kernel
from kernelgym.agents.kernels.program import CompiledProgram, compile_program
from kernelgym.errors import UsageError

__all__ = [
    "ASSIGNMENTS",
    "KERNELS",
    "RUN",
    "STOP",
    "Schedule",
    "Schedules",
    "Script",
    "ScriptError",
    "read",
]

KERNELS = tuple(f"k{number}" for number in range(8))
"""Words that name kernels; longer programs cannot be scheduled."""

RUN, STOP = "run", "stop"

_VALUES: dict[str, tuple[int | str, ...]] = {
    # More threads than a block may have: a real failure that a policy has to learn to avoid.
    "block": (32, 64, 128, 256, 512, 1024, 2048),
    "width": (1, 2, 4),
    "unroll": (1, 2, 4, 8),
    "depth": (8, 16, 32),
    "team": ("thread", "warp", "block"),
    "tile": (
        "16x16x1x1",
        "32x32x2x2",
        "32x32x4x4",
        "64x64x4x4",
        "64x64x8x8",
        "128x64x8x8",
        "128x128x8x8",
    ),
}

ASSIGNMENTS = tuple(f"{knob}={value}" for knob, values in _VALUES.items() for value in values)
"""Words that set a knob."""

_MEANING: dict[str, tuple[str, int | str]] = {
    f"{knob}={value}": (knob, value) for knob, values in _VALUES.items() for value in values
}

Schedule: TypeAlias = tuple[tuple[str, int | str], ...]
"""A value for every knob of a program, by the knob's full name, in the program's order."""


class ScriptError(UsageError):
    """A script that cannot be read, or does not fit the program."""


@dataclasses.dataclass(frozen=True)
class Script:
    """A script, read.

    Attributes:
        assignments: (kernel, knob, value), in order.
        stops: Whether it ends the episode.
    """

    assignments: tuple[tuple[int, str, int | str], ...]
    stops: bool


def read(words: Sequence[str]) -> Script:
    """Reads a script.

    Raises:
        ScriptError: A word is unknown or out of place, or the end is missing.
    """
    if not words or words[-1] not in (RUN, STOP):
        last = words[-1] if words else "nothing"
        raise ScriptError(f"script: expected {RUN!r} or {STOP!r} at its end, got {last!r}")
    kernel: int | None = None
    assignments: list[tuple[int, str, int | str]] = []
    for word in words[:-1]:
        if word in KERNELS:
            kernel = KERNELS.index(word)
        elif word not in _MEANING:
            raise ScriptError(f"script: expected a kernel or KNOB=VALUE, got {word!r}")
        elif kernel is None:
            raise ScriptError(f"script: expected a kernel before {word!r}, got none")
        else:
            assignments.append((kernel, *_MEANING[word]))
    return Script(tuple(assignments), words[-1] == STOP)


class Schedules:
    """The schedules of one program, and their texts.

    Args:
        program: A task, lowered to kernels.

    Raises:
        ScriptError: It has more kernels than there are words for.
    """

    def __init__(self, program: CompiledProgram) -> None:
        self.program = program
        self.kernels: tuple[tuple[str, Kernel], ...] = tuple(
            (f"{plan.name}.{kernel.name}", kernel)
            for plan in program.plans
            for kernel in plan.kernels
        )
        if len(self.kernels) > len(KERNELS):
            raise ScriptError(
                f"program: expected at most {len(KERNELS)} kernels, got {len(self.kernels)}"
            )
        self._texts: dict[Schedule, str] = {}

    @classmethod
    def of(cls, task: str) -> Schedules:
        """Those of a task's text, or of an observation's `task`; see `compile_program`."""
        return cls(compile_program(task))

    @functools.cached_property
    def default(self) -> Schedule:
        """What the templates begin with."""
        return tuple((name, knob.choices[0]) for name, knob in self.program.knobs().items())

    def apply(self, schedule: Schedule, script: Script) -> Schedule:
        """The schedule after a script.

        Raises:
            ScriptError: The script names a kernel, a knob or a value that the program lacks. Any
                number is a value of `block`: what a GPU does not take, the judge finds out.
        """
        changed = dict(schedule)
        knobs = self.program.knobs()
        for number, short, value in script.assignments:
            if number >= len(self.kernels):
                raise ScriptError(f"script: expected one of {len(self.kernels)} kernels, k{number}")
            name = f"{self.kernels[number][0]}.{short}"
            if name not in knobs:
                raise ScriptError(f"script: expected a knob of k{number}, got {short}")
            if short != "block" and value not in knobs[name].choices:
                expected = ", ".join(map(str, knobs[name].choices))
                raise ScriptError(f"script: expected {short} of {expected}, got {value}")
            changed[name] = value
        return tuple(changed.items())

    def words(self, before: Schedule, after: Schedule) -> tuple[str, ...]:
        """A script that leads from one schedule to another."""
        words: list[str] = []
        old = dict(before)
        for word, (kernel, _) in zip(KERNELS, self.kernels, strict=False):
            changes = [
                f"{name.rpartition('.')[2]}={value}"
                for name, value in after
                if name.rpartition(".")[0] == kernel and old[name] != value
            ]
            words += [word, *changes] if changes else []
        return (*words, RUN)

    def text(self, schedule: Schedule) -> str:
        """`model_new.py` with a schedule."""
        if schedule not in self._texts:
            self._texts[schedule] = self.program.render(dict(schedule))
        return self._texts[schedule]

    def space(self, assignments: Sequence[str] = ASSIGNMENTS) -> Iterator[Schedule]:
        """Every schedule that scripts of these words can reach, the default first."""
        values: list[list[int | str]] = []
        for name, knob in self.program.knobs().items():
            short = name.rpartition(".")[2]
            said = [_MEANING[word][1] for word in assignments if _MEANING[word][0] == short]
            fits = [v for v in said if short == "block" or v in knob.choices]
            values.append(list(dict.fromkeys([knob.choices[0], *fits])))
        names = [name for name, _ in self.default]
        for chosen in itertools.product(*values):
            yield tuple(zip(names, chosen, strict=True))
