"""The reference agent: writes kernels from templates, then tunes them by what verdicts say.

It knows no task by name. It reads the reference program out of the observation, traces it on fake
tensors to a graph of ATen operators, compiles that to CUDA with `kernelgym.agents.kernels`, and has
it judged. From then on it climbs: each turn changes one knob (block size, elements per thread,
tile, who works on a row) of the kernel that takes the most time, and keeps what is faster. A change
that no longer builds, launches or checks is taken back; a first version that does not is written
again with the smallest knobs.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from kernelgym.agents.kernels.lowering import UnsupportedOperator
from kernelgym.agents.kernels.program import CompiledProgram, compile_program
from kernelgym.edits import Submit, WriteFile, render
from kernelgym.errors import TaskFormatError, UsageError
from kernelgym.judge.verdict import Verdict
from kernelgym.workspace import MAIN_FILE

__all__ = ["Arguments", "Search"]

Choice = dict[str, "int | str"]


@dataclasses.dataclass(frozen=True)
class Arguments:
    """What `Search` can be told.

    Attributes:
        patience: Verdicts in a row without a faster kernel after which it submits, at least 1.
        gain: A time counts as faster from this relative gain on.
    """

    patience: int = 6
    gain: float = 0.01

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if self.patience < 1:
            raise UsageError(f"patience: expected at least 1, got {self.patience}")
        if not 0 <= self.gain < 1:
            raise UsageError(f"gain: expected 0 or more, less than 1, got {self.gain}")


@dataclasses.dataclass
class _Climb:
    """The state of one episode."""

    program: CompiledProgram
    sent: Choice  # what the last text was written with
    best: Choice | None = None  # the fastest correct one
    best_seconds: float = float("inf")
    shares: dict[str, float] = dataclasses.field(default_factory=dict)
    tried: set[tuple[tuple[str, int | str], ...]] = dataclasses.field(default_factory=set)
    since_best: int = 0


class Search:
    """Writes kernels from templates and tunes them.

    Args:
        arguments: All arguments as one record.
        **fields: Single fields of `Arguments`, over those of `arguments`.
    """

    def __init__(self, arguments: Arguments | None = None, **fields: Any) -> None:
        self.arguments = dataclasses.replace(arguments or Arguments(), **fields)
        self._climb: _Climb | None = None
        self.gave_up = ""
        """Why there is nothing to send in this episode, or `""`."""

    def reset(self, info: dict[str, Any]) -> None:
        """Forgets the last episode."""
        self._climb = None
        self.gave_up = ""

    def __call__(self, observation: Any, info: dict[str, Any]) -> str:
        """The next version, or the best one and `submit`."""
        if self._climb is None:
            try:
                program = self.compiled(observation["task"])
            except (UnsupportedOperator, TaskFormatError) as error:
                self.gave_up = str(error)
                return render(Submit())
            self._climb = _Climb(program, {})
            return self._send(self._climb, {})
        climb = self._climb
        verdict: Verdict | None = info["verdict"]
        if verdict is not None:
            self._learn(climb, verdict)
        choice = self._next(climb)
        if choice is None:
            return self._submit(climb)
        return self._send(climb, choice)

    def compiled(self, task: str) -> CompiledProgram:
        """The program whose knobs are turned; others may be given by a subclass.

        Raises:
            UnsupportedOperator: There is no kernel for one of its operators.
            TaskFormatError: There is no program in the text.
        """
        return compile_program(task)

    def _send(self, climb: _Climb, choice: Choice) -> str:
        climb.sent = choice
        climb.tried.add(_key(climb, choice))
        return render(WriteFile(MAIN_FILE, climb.program.render(choice)))

    def _submit(self, climb: _Climb) -> str:
        """Ends the episode on the best version."""
        if climb.best is None or climb.best == climb.sent:
            return render(Submit())
        return render(WriteFile(MAIN_FILE, climb.program.render(climb.best)), Submit())

    def _learn(self, climb: _Climb, verdict: Verdict) -> None:
        """Takes the verdict on what was sent."""
        climb.since_best += 1
        if not verdict.correct:
            return
        seconds = verdict.timing.candidate.median if verdict.timing is not None else float("inf")
        if climb.best is None or seconds < climb.best_seconds * (1 - self.arguments.gain):
            climb.best, climb.best_seconds, climb.since_best = climb.sent, seconds, 0
            if verdict.counters is not None:
                climb.shares = {k.name: k.share for k in verdict.counters.kernels}

    def _next(self, climb: _Climb) -> Choice | None:
        """The next choice of knobs, or None when it is time to stop."""
        if climb.since_best >= self.arguments.patience:
            return None
        if climb.best is None:
            return next((c for c in _repairs(climb) if _key(climb, c) not in climb.tried), None)
        neighbours = (
            {**climb.best, name: value}
            for name, knob in _by_weight(climb)
            for value in _nearest(climb.best.get(name, knob.choices[0]), knob.choices)
        )
        return next((c for c in neighbours if _key(climb, c) not in climb.tried), None)


def _nearest(here: int | str, choices: tuple[int | str, ...]) -> list[int | str]:
    """The other choices; numbers by their ratio to the one that holds, smaller ones first."""

    def distance(choice: int | str) -> tuple[float, float]:
        if isinstance(choice, str) or isinstance(here, str):
            return 0.0, 0.0
        return max(choice / here, here / choice), choice

    return sorted((c for c in choices if c != here), key=distance)


def _key(climb: _Climb, choice: Choice) -> tuple[tuple[str, int | str], ...]:
    """A choice with all knobs spelled out."""
    knobs = climb.program.knobs()
    return tuple((name, choice.get(name, knob.choices[0])) for name, knob in knobs.items())


def _repairs(climb: _Climb) -> tuple[Choice, ...]:
    """What to try when the first version fails: the smallest knobs, then the simplest teams."""
    smallest: Choice = {}
    for name, knob in climb.program.knobs().items():
        numbers = [c for c in knob.choices if isinstance(c, int)]
        if numbers:
            smallest[name] = min(numbers)
        elif "16x16x1x1" in knob.choices:
            smallest[name] = "16x16x1x1"
    alone = {
        name: "thread" for name, knob in climb.program.knobs().items() if "thread" in knob.choices
    }
    return smallest, {**smallest, **alone}


def _by_weight(climb: _Climb) -> list[tuple[str, Any]]:
    """Knobs, those of the kernels that take the most time first; none of kernels never launched."""

    def weight(name: str) -> float:
        plan, kernel, _ = name.split(".")
        found = [s for k, s in climb.shares.items() if f"{plan}_{kernel}" in k]
        return max(found, default=0.0 if climb.shares else 1.0)

    weighted = [(weight(name), name, knob) for name, knob in climb.program.knobs().items()]
    ordered = sorted(weighted, key=lambda w: -w[0])
    return [(name, knob) for share, name, knob in ordered if share > 0]
