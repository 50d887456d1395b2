"""Checkpoints: one safetensors file with weights, optimisers' states, and how far a stage is."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path

import safetensors
import safetensors.torch
import torch

from kernelgym.agents.training.network import NetworkConfig, Transformer, make_actor, make_critic
from kernelgym.agents.training.tokens import encode, words
from kernelgym.errors import RecordError

__all__ = ["Learner", "State", "load", "save"]


@dataclasses.dataclass
class State:
    """How far a stage is.

    Attributes:
        stage: Its name.
        iteration: Iterations done.
        verdicts: Verdicts used so far, of all stages.
        done: Whether the stage has ended.
    """

    stage: str = ""
    iteration: int = 0
    verdicts: int = 0
    done: bool = False


_UNREADABLE = (
    OSError,
    KeyError,
    TypeError,
    ValueError,
    RuntimeError,
    safetensors.SafetensorError,
)


class Learner:
    """Actor and critic, their optimisers, and how far they are.

    Args:
        config: Size of the networks.
        language: Ids of the words that the policy may say.
        turns: Turns of the episodes that it is trained for.
        seed: Of the initial weights.
    """

    def __init__(
        self, config: NetworkConfig, language: Sequence[int], turns: int, seed: int
    ) -> None:
        self.config = config
        self.language = tuple(language)
        self.turns = turns
        self.actor = make_actor(config, 2 * seed)
        self.critic = make_critic(config, 2 * seed + 1)
        self.state = State()
        self.start_stage("", 1e-3, 1e-3)

    def start_stage(self, stage: str, lr: float, critic_lr: float) -> None:
        """Begins a stage: new optimisers on the weights as they are."""
        self.state = State(stage, 0, self.state.verdicts)
        self.optimizers = {
            "actor": torch.optim.Adam(self.actor.parameters(), lr=lr),
            "critic": torch.optim.Adam(self.critic.parameters(), lr=critic_lr),
        }

    def _networks(self) -> dict[str, Transformer]:
        return {"actor": self.actor, "critic": self.critic}


def save(learner: Learner, path: Path) -> None:
    """Writes a checkpoint, whole or not at all."""
    tensors: dict[str, torch.Tensor] = {}
    for name, network in learner._networks().items():
        for key, tensor in network.state_dict().items():
            tensors[f"{name}.{key}"] = tensor.contiguous()
        for place, moments in learner.optimizers[name].state_dict()["state"].items():
            for key, tensor in moments.items():
                tensors[f"optimizer.{name}.{place}.{key}"] = tensor.contiguous()
    about = {
        "state": dataclasses.asdict(learner.state),
        "network": dataclasses.asdict(learner.config),
        "language": words(learner.language),
        "turns": learner.turns,
    }
    # One entry: several would be written in an order that changes from file to file.
    metadata = {"kernelgym": json.dumps(about)}
    fresh = path.with_name(path.name + ".new")
    safetensors.torch.save_file(tensors, fresh, metadata)
    os.replace(fresh, path)


def load(path: str | os.PathLike[str], lr: float = 1e-3, critic_lr: float = 1e-3) -> Learner:
    """Reads a checkpoint.

    Args:
        path: What `save` wrote.
        lr: The actor's learning rate from here on.
        critic_lr: The critic's.

    Raises:
        RecordError: It is something else.
    """
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        about = json.loads(metadata["kernelgym"])
        state = State(**about["state"])
        network, language = NetworkConfig(**about["network"]), encode(about["language"])
        learner = Learner(network, language, about["turns"], 0)
        learner.start_stage(state.stage, lr, critic_lr)
        learner.state = state
        for name, part in learner._networks().items():
            part.load_state_dict(_under(tensors, f"{name}."))
            moments: dict[int, dict[str, torch.Tensor]] = {}
            for key, tensor in _under(tensors, f"optimizer.{name}.").items():
                place, _, kind = key.partition(".")
                moments.setdefault(int(place), {})[kind] = tensor
            optimizer = learner.optimizers[name]
            optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})
    except _UNREADABLE as error:
        raise RecordError(f"{path}: expected a checkpoint, got: {error}") from error
    return learner


def _under(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
