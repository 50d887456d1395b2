"""The five stages: what each iteration of one does.

Everything that is drawn in an iteration follows from (seed, stage, iteration) alone, so that a
stage that was killed continues to the same curve.
"""

from __future__ import annotations

import dataclasses
import hashlib
import random
from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import nn

from kernelgym.agents.training.checkpoint import Learner
from kernelgym.agents.training.config import CloneConfig, PlayConfig, TrainingConfig
from kernelgym.agents.training.expert import demonstrations, search_trials
from kernelgym.agents.training.network import Transformer
from kernelgym.agents.training.ppo import (
    Batch,
    PpoConfig,
    advantages,
    explained_variance,
    policy_loss,
    said_logps,
    token_mean,
    values_of,
)
from kernelgym.agents.training.rollout import Arena, Episode, play
from kernelgym.errors import UsageError

__all__ = [
    "Metrics",
    "Stage",
    "clone_step",
    "draw_seed",
    "own_episodes",
    "play_step",
    "shuffled",
    "stage_of",
    "value_step",
    "worth_keeping",
]

Metrics: TypeAlias = "dict[str, float]"


@dataclasses.dataclass(frozen=True)
class Stage:
    """One stage.

    Attributes:
        name: Its name.
        iterations: How many it has.
        lr: The actor's learning rate.
        critic_lr: The critic's.
        prepare: Makes the episodes that it learns from, once, or None where each iteration plays
            its own. Returns them with the number of verdicts used.
        step: One iteration: learns, and says what to log. `verdicts` is what it used.
    """

    name: str
    iterations: int
    lr: float
    critic_lr: float
    prepare: Callable[[Learner, Arena], tuple[list[Episode], int]] | None
    step: Callable[[Learner, Arena, Sequence[Episode], int], Metrics]


def stage_of(name: str, config: TrainingConfig) -> Stage:
    """The stage of that name, as configured."""
    if name in ("single_turn_ppo", "agentic_ppo"):
        played: PlayConfig = getattr(config, name)
        turns = 1 if name == "single_turn_ppo" else config.turns

        def step(
            learner: Learner, arena: Arena, data: Sequence[Episode], iteration: int
        ) -> Metrics:
            seed = draw_seed(config.seed, name, iteration)
            return play_step(learner, arena, config, played, turns, seed)

        return Stage(name, played.iterations, played.ppo.lr, played.ppo.critic_lr, None, step)
    if name == "value_pretraining":
        value = config.value_pretraining

        def prepare(learner: Learner, arena: Arena) -> tuple[list[Episode], int]:
            seed = draw_seed(config.seed, name, -1)
            return own_episodes(learner, arena, config, value.episodes, seed)

        def regress(
            learner: Learner, arena: Arena, data: Sequence[Episode], iteration: int
        ) -> Metrics:
            return value_step(learner, data, config.agentic_ppo.ppo)

        return Stage(name, value.iterations, value.lr, value.lr, prepare, regress)
    clone: CloneConfig = getattr(config, name)

    def collect(learner: Learner, arena: Arena) -> tuple[list[Episode], int]:
        if name == "sft":
            return _expert_episodes(arena, config)
        seed = draw_seed(config.seed, name, -1)
        episodes, verdicts = own_episodes(learner, arena, config, clone.episodes, seed)
        kept = [episode for episode in episodes if worth_keeping(episode, clone.keep)]
        if not kept:
            raise UsageError(
                f"rft.keep: expected episodes of {clone.keep} or more, the best of "
                f"{len(episodes)} was {max(e.total for e in episodes):g}"
            )
        return kept, verdicts

    def imitate(learner: Learner, arena: Arena, data: Sequence[Episode], iteration: int) -> Metrics:
        rng = random.Random(draw_seed(config.seed, name, iteration))
        chosen = rng.choices(data, k=clone.batch)
        return clone_step(learner, chosen, config.allowed)

    return Stage(name, clone.iterations, clone.lr, clone.lr, collect, imitate)


def draw_seed(seed: int, stage: str, iteration: int) -> int:
    """A seed of 63 bits for what an iteration draws."""
    digest = hashlib.sha256(f"{seed} {stage} {iteration}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def own_episodes(
    learner: Learner, arena: Arena, config: TrainingConfig, count: int, seed: int
) -> tuple[list[Episode], int]:
    """Episodes of the policy itself on training tasks, and the verdicts used."""
    generator = torch.Generator().manual_seed(seed)
    order = [place % len(arena.tasks) for place in range(count)]
    episodes = play(
        learner.actor,
        arena,
        order,
        config.turns,
        allowed=config.allowed,
        generator=generator,
    )
    sound = [episode for episode in episodes if not episode.fault]
    if config.shuffle_rewards:
        sound = shuffled(sound, random.Random(seed))
    return sound, sum(episode.verdicts for episode in episodes)


def worth_keeping(episode: Episode, least: float) -> bool:
    """Whether an episode is rewarded and not degenerate.

    Degenerate are scripts that could not be applied, and turns that try nothing new.
    """
    tried = episode.schedules[: episode.verdicts]
    return episode.total >= least and not episode.invalid and len(set(tried)) == len(tried)


def shuffled(episodes: Sequence[Episode], rng: random.Random) -> list[Episode]:
    """The episodes with their totals dealt out at random, paid at the end: for a control."""
    totals = [episode.total for episode in episodes]
    rng.shuffle(totals)
    return [
        dataclasses.replace(e, rewards=[*[0.0] * (len(e.rewards) - 1), total])
        for e, total in zip(episodes, totals, strict=True)
    ]


def clone_step(learner: Learner, episodes: Sequence[Episode], allowed: Sequence[int]) -> Metrics:
    """One gradient step of imitation: the cross-entropy of what was said."""
    batch = Batch.of(episodes)
    logps, entropy = said_logps(learner.actor, batch, allowed)
    loss = -token_mean(logps, batch.said)
    _descend(learner, "actor", loss, 1.0)
    return {"loss": loss.item(), "entropy": token_mean(entropy, batch.said).item()}


def value_step(learner: Learner, episodes: Sequence[Episode], ppo: PpoConfig) -> Metrics:
    """One gradient step of the critic alone, to targets of value plus advantage."""
    batch = Batch.of(episodes)
    values = values_of(learner.critic, batch)
    with torch.no_grad():
        _, targets = advantages(batch, dataclasses.replace(ppo, advantage="gae"), values)
    loss = token_mean((values - targets) ** 2, batch.said)
    explained = explained_variance(values.detach(), targets, batch.said)
    _descend(learner, "critic", loss, ppo.max_norm)
    return {"loss": loss.item(), "explained_variance": explained}


def play_step(
    learner: Learner,
    arena: Arena,
    config: TrainingConfig,
    played: PlayConfig,
    turns: int,
    seed: int,
) -> Metrics:
    """One iteration of PPO: plays a batch of episodes and learns from it."""
    rng = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    chosen = rng.sample(range(len(arena.tasks)), min(played.tasks, len(arena.tasks)))
    order = [task for task in chosen for _ in range(played.group)]
    every = play(learner.actor, arena, order, turns, allowed=config.allowed, generator=generator)
    episodes = [episode for episode in every if not episode.fault]
    metrics = _watched(every, episodes)
    if not episodes:
        return metrics
    if config.shuffle_rewards:
        episodes = shuffled(episodes, rng)
    batch, ppo = Batch.of(episodes), played.ppo
    with torch.no_grad():
        values = values_of(learner.critic, batch) if ppo.advantage == "gae" else None
        advantage, targets = advantages(batch, ppo, values)
        if values is not None:
            metrics["explained_variance"] = explained_variance(values, targets, batch.said)
            advantage = _normalised(advantage, batch.said)
    for epoch in range(ppo.epochs):
        logps, entropy = said_logps(learner.actor, batch, config.allowed)
        loss, watched = policy_loss(logps, batch, advantage, ppo)
        mean_entropy = token_mean(entropy, batch.said)
        if epoch == 0:  # before the first step the ratio should be 1: what is not is a mismatch
            metrics["mismatch"] = watched["mismatch"]
            metrics["entropy"] = mean_entropy.item()
        _descend(learner, "actor", loss - ppo.entropy * mean_entropy, ppo.max_norm)
        metrics |= {name: watched[name] for name in ("kl", "clipped", "rejected")}
        metrics["loss"] = loss.item()
        if ppo.advantage == "gae":
            error = (values_of(learner.critic, batch) - targets) ** 2
            value_loss = token_mean(error, batch.said)
            _descend(learner, "critic", value_loss, ppo.max_norm)
            metrics["value_loss"] = value_loss.item()
    return metrics


def _watched(every: Sequence[Episode], episodes: Sequence[Episode]) -> Metrics:
    count = max(len(episodes), 1)
    best = [episode.best for episode in episodes]
    turns = max(sum(len(episode.rewards) for episode in episodes), 1)
    return {
        "reward": sum(episode.total for episode in episodes) / count,
        "passed": sum(verdict is not None and verdict.correct for verdict in best) / count,
        "cheats": sum(v is not None and v.reason.startswith("cheat.") for v in best) / count,
        "invalid": sum(episode.invalid for episode in episodes) / turns,
        "length": sum(len(episode.actions) for episode in episodes) / count,
        "faults": float(len(every) - len(episodes)),
        "verdicts": float(sum(episode.verdicts for episode in every)),
    }


def _expert_episodes(arena: Arena, config: TrainingConfig) -> tuple[list[Episode], int]:
    rng = random.Random(draw_seed(config.seed, "sft", -1))
    episodes: list[Episode] = []
    verdicts = 0
    for task in range(len(arena.tasks)):
        trials = search_trials(arena, task, config.assignments)
        shown = demonstrations(
            arena, task, trials, config.turns, config.assignments, config.sft.repairs, rng
        )
        verdicts += trials.verdicts + sum(episode.verdicts for episode in shown)
        episodes += shown
    if not episodes:
        raise UsageError("sft: expected a task that search solves, got none")
    return episodes, verdicts


def _normalised(advantage: torch.Tensor, said: torch.Tensor) -> torch.Tensor:
    chosen = advantage[said]
    spread = chosen.std(unbiased=False)
    return ((advantage - chosen.mean()) / (spread + 1e-6)) * said


def _descend(learner: Learner, name: str, loss: torch.Tensor, max_norm: float) -> None:
    network: Transformer = getattr(learner, name)
    optimizer = learner.optimizers[name]
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(network.parameters(), max_norm)
    optimizer.step()
