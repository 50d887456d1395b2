"""Proximal policy optimisation on tokens: advantages, losses, and what to watch.

Only tokens that the policy said are actions; a turn's reward is paid at its last one. Advantages
are generalised advantage estimates with a critic (`gae`), or without one: a trajectory's reward in
the group of its task's (`grpo`), or a turn's return against the mean of the other trajectories at
that turn (`trloo`, the leave-one-out form of Dr. Kernel, arXiv 2602.05885).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch

from kernelgym.agents.training.network import Transformer
from kernelgym.agents.training.rollout import Episode
from kernelgym.agents.training.tokens import PAD
from kernelgym.errors import ConfigError

__all__ = [
    "ADVANTAGES",
    "Batch",
    "PpoConfig",
    "advantages",
    "explained_variance",
    "policy_loss",
    "said_logps",
    "token_mean",
    "values_of",
]

ADVANTAGES = ("gae", "grpo", "trloo")


@dataclasses.dataclass(frozen=True)
class PpoConfig:
    """How a policy is improved. The defaults are CUDA Agent's (arXiv 2602.24286) but for size.

    Attributes:
        advantage: One of `ADVANTAGES`.
        gamma: Discount per token.
        lam: GAE's λ.
        clip_low: Ratios below 1 - clip_low are clipped.
        clip_high: Ratios above 1 + clip_high are clipped.
        entropy: Weight of the entropy bonus.
        epochs: Passes over each batch.
        lr: The actor's learning rate.
        critic_lr: The critic's.
        max_norm: Gradients are clipped to this norm.
        mismatch: Trajectories whose geometric mean ratio of the learner's to the player's
            probabilities is off 1 by more than this are left out; 0 leaves in all.
    """

    advantage: str = "gae"
    gamma: float = 1.0
    lam: float = 0.95
    clip_low: float = 0.2
    clip_high: float = 0.28
    entropy: float = 0.01
    epochs: int = 2
    lr: float = 3e-4
    critic_lr: float = 6e-4
    max_norm: float = 1.0
    mismatch: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if self.advantage not in ADVANTAGES:
            raise ConfigError(
                f"advantage: expected one of {', '.join(ADVANTAGES)}, got {self.advantage!r}"
            )
        if self.epochs < 1 or not 0 <= self.gamma <= 1 or not 0 <= self.lam <= 1:
            raise ConfigError(f"ppo: expected epochs of 1 or more, gamma and lam in 0..1: {self}")


@dataclasses.dataclass(frozen=True)
class Batch:
    """Episodes as tensors (batch, length); `said` marks the tokens that are actions.

    `rewards` and `old_logps` are 0 elsewhere; `turns` is -1 elsewhere; `tasks` is (batch,).
    """

    ids: torch.Tensor
    said: torch.Tensor
    old_logps: torch.Tensor
    rewards: torch.Tensor
    turns: torch.Tensor
    tasks: torch.Tensor

    @classmethod
    def of(cls, episodes: Sequence[Episode], device: torch.device | str = "cpu") -> Batch:
        """Pads episodes behind."""
        shape = (len(episodes), max(len(episode.ids) for episode in episodes))
        ids = torch.full(shape, PAD)
        old_logps, rewards = torch.zeros(shape), torch.zeros(shape)
        turns = torch.full(shape, -1)
        for row, episode in enumerate(episodes):
            ids[row, : len(episode.ids)] = torch.tensor(episode.ids)
            places = torch.tensor(episode.actions)
            turns[row, places] = torch.tensor(episode.turns)
            old_logps[row, places] = torch.tensor(episode.logps)
            last = dict(zip(episode.turns, episode.actions, strict=True))
            for turn, reward in enumerate(episode.rewards):
                if turn in last:  # what a demonstration leaves out pays nobody
                    rewards[row, last[turn]] = reward
        tasks = torch.tensor([episode.task for episode in episodes])
        parts = (ids, turns >= 0, old_logps, rewards, turns, tasks)
        return cls(*(part.to(device) for part in parts))


def token_mean(values: torch.Tensor, said: torch.Tensor) -> torch.Tensor:
    """The mean over trajectories of the mean over each one's actions."""
    counts = said.sum(1).clamp_min(1)
    return ((values * said).sum(1) / counts).mean()


def said_logps(
    actor: Transformer, batch: Batch, allowed: Sequence[int]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability of each action, and the entropy before it; 0 where nothing was said."""
    logits = actor(batch.ids[:, :-1]).float()
    barred = torch.ones(logits.shape[-1], dtype=torch.bool, device=logits.device)
    barred[list(allowed)] = False
    logps = logits.masked_fill(barred, float("-inf")).log_softmax(-1)
    said = batch.said[:, 1:]
    words = batch.ids[:, 1:].where(said, torch.zeros_like(batch.ids[:, 1:]))
    chosen = logps.gather(-1, words[..., None])[..., 0]
    entropy = -(logps.exp() * logps.masked_fill(barred, 0.0)).sum(-1)
    zero = torch.zeros_like(chosen)
    return _shifted(chosen.where(said, zero)), _shifted(entropy.where(said, zero))


def values_of(critic: Transformer, batch: Batch) -> torch.Tensor:
    """The critic's value before each action; 0 where nothing was said."""
    values = critic(batch.ids[:, :-1]).float()[..., 0]
    return _shifted(values) * batch.said


def advantages(
    batch: Batch, config: PpoConfig, values: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Advantages and value targets of all actions, (batch, length), 0 elsewhere.

    Args:
        batch: The episodes.
        config: Which kind, γ and λ.
        values: The critic's values; needed by `gae` alone. Without it, targets are returns.
    """
    if config.advantage == "gae":
        if values is None:
            raise ConfigError("advantage: expected the critic's values for 'gae', got none")
        return _gae(batch, values, config.gamma, config.lam)
    if config.advantage == "grpo":
        total = batch.rewards.sum(1)
        scaled = torch.zeros_like(total)
        for task in batch.tasks.unique():
            group = batch.tasks == task
            mean, spread = total[group].mean(), total[group].std(unbiased=False)
            scaled[group] = (total[group] - mean) / (spread + 1e-6)
        per_token = scaled[:, None] * batch.said
        return per_token, total[:, None] * batch.said
    return _trloo(batch, config.gamma)


def policy_loss(
    logps: torch.Tensor, batch: Batch, advantage: torch.Tensor, config: PpoConfig
) -> tuple[torch.Tensor, dict[str, float]]:
    """The clipped surrogate loss, and what to watch of it."""
    shift = logps - batch.old_logps
    ratio = shift.exp()
    clipped = ratio.clamp(1 - config.clip_low, 1 + config.clip_high)
    said = batch.said
    kept = torch.ones(len(said), dtype=torch.bool, device=said.device)
    mean_shift = (shift * said).sum(1) / said.sum(1).clamp_min(1)
    if config.mismatch > 0:
        kept = (mean_shift.detach().exp() - 1).abs() <= config.mismatch
    gain = torch.minimum(ratio * advantage, clipped * advantage)
    loss = -token_mean(gain * kept[:, None], said)
    with torch.no_grad():
        watched = {
            "kl": float(token_mean(ratio - 1 - shift, said)),
            "clipped": float(token_mean((ratio != clipped).float(), said)),
            "mismatch": float((mean_shift.exp() - 1).abs().max()),
            "rejected": float(1 - kept.float().mean()),
        }
    return loss, watched


def explained_variance(values: torch.Tensor, targets: torch.Tensor, said: torch.Tensor) -> float:
    """1 - Var(target - value) / Var(target) over all actions; 0 where targets do not vary."""
    error, target = (targets - values)[said], targets[said]
    variance = target.var(unbiased=False)
    if float(variance) < 1e-12:
        return 0.0
    return float(1 - error.var(unbiased=False) / variance)


def _shifted(later: torch.Tensor) -> torch.Tensor:
    """(batch, length - 1), said of the token behind each place, put at that token."""
    return torch.cat([torch.zeros_like(later[:, :1]), later], 1)


def _gae(
    batch: Batch, values: torch.Tensor, gamma: float, lam: float
) -> tuple[torch.Tensor, torch.Tensor]:
    advantage = torch.zeros_like(values)
    following = torch.zeros_like(values[:, 0])  # of the next action: its value, its advantage
    later = torch.zeros_like(following)
    for place in range(values.shape[1] - 1, -1, -1):
        said = batch.said[:, place]
        delta = batch.rewards[:, place] + gamma * following - values[:, place]
        later = torch.where(said, delta + gamma * lam * later, later)
        following = torch.where(said, values[:, place], following)
        advantage[:, place] = torch.where(said, later, torch.zeros_like(later))
    return advantage, (advantage + values) * batch.said


def _trloo(batch: Batch, gamma: float) -> tuple[torch.Tensor, torch.Tensor]:
    turns = int(batch.turns.max()) + 1
    paid = torch.stack([(batch.rewards * (batch.turns == turn)).sum(1) for turn in range(turns)], 1)
    played = torch.stack([(batch.turns == turn).any(1) for turn in range(turns)], 1)
    returns = torch.zeros_like(paid)
    later = torch.zeros_like(paid[:, 0])
    for turn in range(turns - 1, -1, -1):
        later = paid[:, turn] + gamma * later
        returns[:, turn] = later
    scaled = torch.zeros_like(returns)
    for task in batch.tasks.unique():
        for turn in range(turns):
            group = (batch.tasks == task) & played[:, turn]
            count = int(group.sum())
            if count > 1:
                own = returns[group, turn]
                scaled[group, turn] = (own - own.mean()) * count / (count - 1)
    place = batch.turns.clamp_min(0)
    return scaled.gather(1, place) * batch.said, returns.gather(1, place) * batch.said
