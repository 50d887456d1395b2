"""Tuning as a game of numbers: knobs of kernel templates as actions, what was measured as a vector.

`KnobActions` turns an environment of texts into one of `MultiDiscrete` actions: the task is compiled
to kernels (`kernelgym.agents.kernels`), an action picks a choice for every knob, and is sent as the
program written so. `NumericObservation` shows outcome, times, counters and the knobs as numbers.
Both have a fixed size, so that one policy plays all tasks; what a task lacks is masked.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any, TypeAlias

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from kernelgym.agents.kernels.program import CompiledProgram, compile_program
from kernelgym.config import JudgeConfig
from kernelgym.edits import WriteFile, render
from kernelgym.judge.verdict import Verdict
from kernelgym.judging import SupportsEvaluate
from kernelgym.observation import COUNTERS, OUTCOMES
from kernelgym.rewards import log_speedup
from kernelgym.workspace import MAIN_FILE, Workspace

if TYPE_CHECKING:
    from kernelgym.tasks import Task

__all__ = [
    "MAX_CHOICES",
    "MAX_KNOBS",
    "SIZE",
    "KnobActions",
    "KnobGame",
    "NumericObservation",
    "RememberingJudge",
]

MAX_KNOBS = 12
"""Knobs that an action sets; those of further kernels keep their first choice."""

MAX_CHOICES = 8
"""Choices of a knob that can be picked."""

_FAMILIES = ("pointwise", "rows", "product", "window", "scan")
_KNOBS = ("block", "width", "team", "tile", "depth", "unroll")
_PER_KNOB = 3 + len(_FAMILIES) + len(_KNOBS)
_HEAD = len(OUTCOMES) + 4 + 2 * len(COUNTERS) + 3

SIZE = _HEAD + MAX_KNOBS * _PER_KNOB
"""Length of a numeric observation."""

Vector: TypeAlias = npt.NDArray[np.float32]
Action: TypeAlias = "npt.NDArray[np.int64]"


class KnobGame:
    """One episode as numbers; used by the wrappers, and by an agent that plays texts.

    Args:
        program: The task, compiled.
        max_turns: Turns of an episode.
    """

    def __init__(self, program: CompiledProgram, max_turns: int) -> None:
        self._program = program
        self._max_turns = max_turns
        self._knobs = list(program.knobs().items())[:MAX_KNOBS]
        self._sent = np.zeros(MAX_KNOBS, np.int64)
        self._best = np.zeros(MAX_KNOBS, np.int64)
        self._best_score = -math.inf
        self._kinds = [_kind(name) for name, _ in self._knobs]

    def mask(self) -> npt.NDArray[np.bool_]:
        """Which choices there are, of shape (MAX_KNOBS x MAX_CHOICES,); at least one each."""
        mask = np.zeros((MAX_KNOBS, MAX_CHOICES), np.bool_)
        mask[:, 0] = True
        for row, (_, knob) in enumerate(self._knobs):
            mask[row, : len(knob.choices)] = True
        return mask.reshape(-1)

    def text(self, action: Action) -> str:
        """The program with an action's choices, as an edit text; remembers what was sent."""
        self._sent = np.array(action, np.int64)
        choice = {
            name: knob.choices[min(int(picked), len(knob.choices) - 1)]
            for (name, knob), picked in zip(self._knobs, action, strict=False)
        }
        return render(WriteFile(MAIN_FILE, self._program.render(choice)))

    def learned(self, verdict: Verdict) -> None:
        """Takes the verdict on what was sent."""
        score = log_speedup(verdict)
        if score > self._best_score:
            self._best_score, self._best = score, self._sent

    def vector(self, observation: dict[str, Any]) -> Vector:
        """An observation as numbers, most of them between -1 and 1."""
        outcome = np.zeros(len(OUTCOMES), np.float32)
        outcome[int(observation["outcome"])] = 1.0
        medians = np.asarray(observation["speedup"])[:, 0]
        speedups = np.log(np.maximum(medians, 0.01)) / 5.0
        mask = np.asarray(observation["timing_mask"], np.float32)
        runtime = np.log10(max(float(observation["runtime"][0]), 1e-9)) / 10.0
        head = [
            outcome,
            speedups * mask[1:],
            [runtime * mask[0], mask[0]],
            np.log1p(np.asarray(observation["counters"], np.float64)) / 30.0,
            observation["counters_mask"],
            [
                int(observation["turn"]) / self._max_turns,
                max(self._best_score, -5.0) / 5.0 if self._best_score > -math.inf else -1.0,
                float(self._best_score > -math.inf),
            ],
        ]
        rows = np.zeros((MAX_KNOBS, _PER_KNOB), np.float32)
        for row, ((_, knob), kind) in enumerate(zip(self._knobs, self._kinds, strict=True)):
            most = max(len(knob.choices) - 1, 1)
            rows[row, :3] = 1.0, self._sent[row] / most, self._best[row] / most
            rows[row, 3:] = kind
        parts = [np.asarray(part, np.float32).reshape(-1) for part in (*head, rows)]
        return np.clip(np.concatenate(parts), -10.0, 10.0).astype(np.float32)


class KnobActions(gym.Wrapper[Any, Any, Any, Any]):
    """Makes an action the choice of every knob.

    `action_masks` says which there are, as sb3-contrib asks for them. A task for which there are no
    kernels raises `UnsupportedOperator` when its episode starts.

    Args:
        env: A `KernelEnv`, bare or wrapped.
    """

    def __init__(self, env: gym.Env[dict[str, Any], str]) -> None:
        super().__init__(env)
        self.action_space = spaces.MultiDiscrete([MAX_CHOICES] * MAX_KNOBS)
        self._compiled = functools.lru_cache(maxsize=256)(compile_program)
        self._turns = int(env.get_wrapper_attr("max_turns"))
        self._game: KnobGame | None = None

    @property
    def game(self) -> KnobGame:
        """The episode's."""
        assert self._game is not None, "expected a call of reset() before"
        return self._game

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """See `KnobGame.mask`."""
        return self.game.mask()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts an episode and compiles its task."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._game = KnobGame(self._compiled(observation["task"]), self._turns)
        return observation, info

    def step(self, action: Action) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        """Sends the program with these choices."""
        result = self.env.step(self.game.text(action))
        if result[4]["verdict"] is not None:
            self.game.learned(result[4]["verdict"])
        return result


class NumericObservation(gym.ObservationWrapper[Vector, Action, dict[str, Any]]):
    """Makes each observation a vector of `SIZE` numbers.

    Args:
        env: A `KnobActions`.
    """

    def __init__(self, env: KnobActions) -> None:
        super().__init__(env)
        self._knobs = env
        self.observation_space = spaces.Box(-10.0, 10.0, (SIZE,), np.float32)

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """See `KnobGame.mask`."""
        return self._knobs.action_masks()

    def observation(self, observation: dict[str, Any]) -> Vector:
        """See `KnobGame.vector`."""
        return self._knobs.game.vector(observation)


class RememberingJudge:
    """Judges the same files for the same task once. For the emulator, whose times are modelled.

    Args:
        judge: Judges what is new; stays open.

    Attributes:
        asked: Verdicts asked for.
        judged: Those that were new.
    """

    def __init__(self, judge: SupportsEvaluate) -> None:
        self._judge = judge
        self._known: dict[tuple[str, str], Verdict] = {}
        self.asked = 0
        self.judged = 0

    @property
    def config(self) -> JudgeConfig:
        """How it judges."""
        return self._judge.config

    @property
    def size(self) -> str:
        """Which shapes it judges at."""
        return self._judge.size

    def evaluate(self, task: Task, workspace: Workspace) -> Verdict:
        """See `kernelgym.Judge.evaluate`; each call returns a record of its own."""
        self.asked += 1
        key = task.id, workspace.hash
        if key not in self._known:
            self._known[key] = self._judge.evaluate(task, workspace)
            self.judged += 1
        return dataclasses.replace(self._known[key])

    def close(self) -> None:
        """Nothing: the judge is the caller's."""


def _kind(name: str) -> Vector:
    """A knob's family and name, each as a one-hot vector."""
    _, kernel, knob = name.split(".")
    family = kernel.rpartition("_")[0]
    told = np.zeros(len(_FAMILIES) + len(_KNOBS), np.float32)
    if family in _FAMILIES:
        told[_FAMILIES.index(family)] = 1.0
    if knob in _KNOBS:
        told[len(_FAMILIES) + _KNOBS.index(knob)] = 1.0
    return told
