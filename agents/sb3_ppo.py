"""An agent trained by PPO (sb3-contrib's, with action masks) to set the knobs of kernel templates.

It learns which tiles, teams and block sizes are fast from outcomes, times and counters alone:

    python -m kernelgym.agents.sb3_ppo --tasks L1/1,L1/23,L2/76 --steps 4096 --out ppo.zip
    kernelgym run --agent sb3_ppo --agent-args '{"model": "ppo.zip"}' --task L1/40 --out runs/ppo

One policy plays all tasks that `kernelgym.agents.kernels` can compile; without a model it plays as an
untrained one does, which is nearly at random.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO

from kernelgym.agents.kernels.lowering import UnsupportedOperator
from kernelgym.agents.kernels.program import compile_program
from kernelgym.agents.sb3_wrappers import (
    MAX_CHOICES,
    MAX_KNOBS,
    SIZE,
    KnobActions,
    KnobGame,
    NumericObservation,
    RememberingJudge,
)
from kernelgym.config import JudgeConfig
from kernelgym.edits import Submit, render
from kernelgym.env import KernelEnv
from kernelgym.errors import TaskFormatError, UsageError
from kernelgym.judge.judge import Judge
from kernelgym.judging import SupportsEvaluate

__all__ = ["SB3PPO", "Arguments", "TrainArguments", "make_training_env", "train"]

_SEEDS = 1_000_003


@dataclasses.dataclass(frozen=True)
class TrainArguments:
    """How a policy is trained.

    Attributes:
        tasks: Task ids; each episode draws one.
        steps: Verdicts to learn from; rounded up to whole rollouts.
        turns: Turns of an episode.
        seed: Seeds the networks, the actions and the choice of tasks.
        learning_rate: Of Adam.
        rollout: Verdicts between updates.
        batch: Verdicts in a gradient step.
        epochs: Passes over a rollout.
        entropy: Weight of the policy's entropy: more explores more.
        discount: How much the next turn's reward counts.
        width: Units in each of the two hidden layers.
    """

    tasks: tuple[str, ...]
    steps: int = 4096
    turns: int = 4
    seed: int = 0
    learning_rate: float = 1e-3
    rollout: int = 128
    batch: int = 64
    epochs: int = 10
    entropy: float = 0.01
    discount: float = 0.9
    width: int = 64


@dataclasses.dataclass(frozen=True)
class Arguments:
    """What `SB3PPO` can be told.

    Attributes:
        model: A file that `train` or `save` wrote; `""`: an untrained policy.
        seed: Seeds the actions that it draws.
        greedy: Whether it takes the likeliest choice rather than to draw.
        turns: Turns of the episodes that it was trained on; scales what it sees of time.
    """

    model: str = ""
    seed: int = 0
    greedy: bool = False
    turns: int = 4


class SB3PPO:
    """Plays a trained policy: one choice of all knobs a turn.

    Args:
        arguments: All arguments as one record.
        **fields: Single fields of `Arguments`, over those of `arguments`.

    Raises:
        UsageError: The model cannot be read, or is not for these spaces.
    """

    def __init__(self, arguments: Arguments | None = None, **fields: Any) -> None:
        self.arguments = dataclasses.replace(arguments or Arguments(), **fields)
        self._game: KnobGame | None = None
        self._drawn = 0
        self.gave_up = ""
        """Why there is nothing to send in this episode, or `""`."""
        if self.arguments.model:
            self.load(self.arguments.model)
        else:
            self.policy = MaskablePPO("MlpPolicy", _Spaces(), n_steps=2, seed=self.arguments.seed)

    def save(self, path: str | Path) -> None:
        """Writes the policy to a file of just that name."""
        with Path(path).open("wb") as file:
            self.policy.save(file)

    def load(self, path: str | Path) -> None:
        """Reads a policy.

        Raises:
            UsageError: It cannot be read, or is not for these spaces.
        """
        try:
            with Path(path).open("rb") as file:
                self.policy = MaskablePPO.load(file, env=_Spaces(), device="cpu")
        except (OSError, ValueError, KeyError) as error:
            raise UsageError(f"model: expected a policy in {path}: {error}") from error

    def reset(self, info: dict[str, Any]) -> None:
        """Forgets the last episode."""
        self._game = None
        self.gave_up = ""

    def __call__(self, observation: Any, info: dict[str, Any]) -> str:
        """The program with the choices that the policy makes."""
        if self._game is None:
            try:
                program = compile_program(observation["task"])
            except (UnsupportedOperator, TaskFormatError) as error:
                self.gave_up = str(error)
                return render(Submit())
            self._game = KnobGame(program, self.arguments.turns)
        elif info["verdict"] is not None:
            self._game.learned(info["verdict"])
        self._drawn += 1
        # Policies draw from torch's global generator, which belongs to whoever runs the agent.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.arguments.seed * _SEEDS + self._drawn)
            action, _ = self.policy.predict(
                self._game.vector(observation),
                deterministic=self.arguments.greedy,
                action_masks=self._game.mask(),
            )
        return self._game.text(action)


def make_training_env(
    tasks: Sequence[str], turns: int, judge: SupportsEvaluate
) -> NumericObservation:
    """The environment that a policy is trained in; pays what each verdict adds to log speedup."""
    env = KernelEnv(list(tasks), max_turns=turns, reward="log_speedup", judge=judge)
    return NumericObservation(KnobActions(env))


def train(arguments: TrainArguments, judge: SupportsEvaluate) -> MaskablePPO:
    """Trains a policy.

    Args:
        arguments: How.
        judge: Judges; stays open. On the emulator, a `RememberingJudge` saves judging the same
            choices again.
    """
    policy = MaskablePPO(
        "MlpPolicy",
        make_training_env(arguments.tasks, arguments.turns, judge),
        learning_rate=arguments.learning_rate,
        n_steps=arguments.rollout,
        batch_size=arguments.batch,
        n_epochs=arguments.epochs,
        gamma=arguments.discount,
        ent_coef=arguments.entropy,
        policy_kwargs={"net_arch": [arguments.width, arguments.width]},
        seed=arguments.seed,
        device="cpu",
    )
    policy.learn(arguments.steps)
    return policy


class _Spaces(gym.Env[Any, Any]):
    """The spaces alone, for policies that are not trained."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-10.0, 10.0, (SIZE,), np.float32)
        self.action_space = spaces.MultiDiscrete([MAX_CHOICES] * MAX_KNOBS)

    def action_masks(self) -> Any:
        """All choices."""
        return np.ones(MAX_CHOICES * MAX_KNOBS, np.bool_)


def main(arguments: Sequence[str] | None = None) -> int:
    """Trains, and writes the policy."""
    parser = argparse.ArgumentParser(description="Train sb3_ppo on the knobs of kernel templates.")
    parser.add_argument("--tasks", required=True, help="task ids, comma-separated")
    parser.add_argument("--out", required=True, type=Path, help="the policy's file")
    parser.add_argument("--device", default="auto", help="where candidates are judged")
    for field in dataclasses.fields(TrainArguments)[1:]:
        kind = type(field.default)
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=kind, default=field.default)
    told = vars(parser.parse_args(arguments))
    out, device = told.pop("out"), told.pop("device")
    told["tasks"] = tuple(told["tasks"].split(","))
    torch.set_num_threads(1)
    with Judge(JudgeConfig(device=device, baselines=("eager",))) as judge:
        remembering = RememberingJudge(judge) if judge.device_name == "emulator" else None
        policy = train(TrainArguments(**told), remembering or judge)
        if remembering is not None:
            print(f"{remembering.asked} verdicts asked for, {remembering.judged} of them new")
    with out.open("wb") as file:
        policy.save(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
