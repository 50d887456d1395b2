"""The configuration of a training, read from a YAML or JSON file."""

from __future__ import annotations

import dataclasses
import os
import typing
from pathlib import Path
from typing import Any

import msgspec
import yaml

from kernelgym.agents.training.network import NetworkConfig
from kernelgym.agents.training.ppo import PpoConfig
from kernelgym.agents.training.script import ASSIGNMENTS, KERNELS
from kernelgym.agents.training.tokens import MAX_TURNS, action_ids
from kernelgym.config import JudgeConfig
from kernelgym.errors import ConfigError
from kernelgym.rewards import REWARDS

__all__ = [
    "STAGES",
    "CloneConfig",
    "PlayConfig",
    "TrainingConfig",
    "ValueConfig",
    "read_config",
]

STAGES = ("sft", "single_turn_ppo", "rft", "value_pretraining", "agentic_ppo")
"""The stages, in order."""


@dataclasses.dataclass(frozen=True)
class CloneConfig:
    """Imitation: `sft` of the expert's trajectories, `rft` of the policy's own.

    Attributes:
        iterations: Gradient steps.
        batch: Trajectories a step.
        lr: Learning rate.
        episodes: Of `rft`: episodes that are played to choose from.
        keep: Of `rft`: an episode is kept from this total reward on.
        repairs: Of `sft`: trajectories for each task that start from a schedule drawn at random.
    """

    iterations: int = 200
    batch: int = 32
    lr: float = 1e-3
    episodes: int = 256
    keep: float = 2.0
    repairs: int = 4


@dataclasses.dataclass(frozen=True)
class PlayConfig:
    """A stage of reinforcement learning.

    Attributes:
        iterations: Batches of episodes, each learned from once played.
        tasks: Tasks in a batch.
        group: Episodes of each.
        ppo: How the policy is improved.
    """

    iterations: int = 40
    tasks: int = 8
    group: int = 8
    ppo: PpoConfig = dataclasses.field(default_factory=PpoConfig)


@dataclasses.dataclass(frozen=True)
class ValueConfig:
    """Value pretraining: the critic learns the policy's returns before it is used.

    Attributes:
        iterations: Gradient steps.
        episodes: Episodes that are played to learn from.
        lr: Learning rate.
    """

    iterations: int = 50
    episodes: int = 128
    lr: float = 1e-3


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """A training.

    Attributes:
        tasks: A file of tasks that `kernelgym tasks synthesize` wrote; paths are relative to the
            configuration's file. The split `train` is trained on, `heldout` evaluated.
        tape: A tape to replay, or None for live verdicts alone.
        live: Whether the judge is asked for what the tape does not hold.
        judge: How candidates are judged; of a tape, which of its settings.
        seed: Of initial weights and everything drawn.
        turns: Turns of an episode, but for `single_turn_ppo`.
        reward: Name of the reward.
        assignments: The words that set knobs; fewer make a smaller space.
        kernels: How many kernels a script may name.
        network: Size of actor and critic.
        stages: Which stages `all` runs.
        evaluate_episodes: Episodes of each held-out task in an evaluation.
        shuffle_rewards: For a control: rewards are dealt out among a batch's episodes at random.
        sft: Imitation of the expert.
        single_turn_ppo: Reinforcement learning on episodes of one turn.
        rft: Imitation of the policy's own good episodes.
        value_pretraining: The critic alone.
        agentic_ppo: Reinforcement learning on whole episodes.
    """

    tasks: str
    tape: str | None = None
    live: bool = False
    judge: JudgeConfig = dataclasses.field(default_factory=JudgeConfig)
    seed: int = 0
    turns: int = 4
    reward: str = "milestone"
    assignments: tuple[str, ...] = ASSIGNMENTS
    kernels: int = len(KERNELS)
    network: NetworkConfig = dataclasses.field(default_factory=NetworkConfig)
    stages: tuple[str, ...] = STAGES
    evaluate_episodes: int = 8
    shuffle_rewards: bool = False
    sft: CloneConfig = dataclasses.field(default_factory=CloneConfig)
    single_turn_ppo: PlayConfig = dataclasses.field(default_factory=lambda: PlayConfig(10))
    rft: CloneConfig = dataclasses.field(default_factory=lambda: CloneConfig(100))
    value_pretraining: ValueConfig = dataclasses.field(default_factory=ValueConfig)
    agentic_ppo: PlayConfig = dataclasses.field(default_factory=PlayConfig)

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if not 1 <= self.turns <= MAX_TURNS:
            raise ConfigError(f"turns: expected 1 to {MAX_TURNS}, got {self.turns}")
        if self.reward not in REWARDS:
            raise ConfigError(f"reward: expected one of {', '.join(REWARDS)}, got {self.reward!r}")
        if not 1 <= self.kernels <= len(KERNELS):
            raise ConfigError(f"kernels: expected 1 to {len(KERNELS)}, got {self.kernels}")
        if self.stages != tuple(stage for stage in STAGES if stage in self.stages):
            raise ConfigError(f"stages: expected some of {STAGES} in order, got {self.stages}")
        if self.tape is None and not self.live:
            raise ConfigError("tape: expected a tape, or live: true")
        action_ids(self.assignments, self.kernels)

    @property
    def allowed(self) -> list[int]:
        """Ids of the words that the policy may say."""
        return action_ids(self.assignments, self.kernels)


def read_config(path: str | os.PathLike[str]) -> TrainingConfig:
    """Reads a configuration; what it leaves out has its default.

    Raises:
        ConfigError: It is not one: a field is not known, or of another type.
    """
    file = Path(path)
    try:
        fields = yaml.safe_load(file.read_bytes())
        if isinstance(fields, dict):
            for name in ("tasks", "tape"):
                if isinstance(fields.get(name), str):
                    fields[name] = str(file.parent / fields[name])
            _refuse_unknown(fields, TrainingConfig, "")
        return msgspec.convert(fields, type=TrainingConfig)
    except (OSError, yaml.YAMLError, msgspec.ValidationError) as error:
        raise ConfigError(f"{path}: expected a training's configuration, got: {error}") from error


def _refuse_unknown(fields: dict[str, Any], kind: type, where: str) -> None:
    """Refuses names that no record has, which msgspec would pass over."""
    known = typing.get_type_hints(kind)
    for name, value in fields.items():
        if name not in known:
            raise ConfigError(f"{where}{name}: expected one of {', '.join(known)}")
        if isinstance(value, dict) and dataclasses.is_dataclass(known[name]):
            _refuse_unknown(value, known[name], f"{where}{name}.")
