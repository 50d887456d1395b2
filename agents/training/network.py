"""The network: a small causal transformer, once as the actor and once as the critic."""

from __future__ import annotations

import dataclasses

import torch
from torch import nn
from torch.nn import functional as F

from kernelgym.agents.training.tokens import ACTIONS, VOCABULARY
from kernelgym.errors import ConfigError

__all__ = ["Cache", "NetworkConfig", "Transformer", "make_actor", "make_critic"]


@dataclasses.dataclass(frozen=True)
class NetworkConfig:
    """Size of a network; actor and critic have one each.

    Attributes:
        width: Of the residual stream; a multiple of `heads`.
        layers: Blocks.
        heads: Attention heads.
        context: Most tokens of an episode.
    """

    width: int = 192
    layers: int = 4
    heads: int = 4
    context: int = 256

    def __post_init__(self) -> None:
        """Refuse sizes that do not fit together."""
        if min(self.width, self.layers, self.heads, self.context) < 1 or self.width % self.heads:
            raise ConfigError(
                f"network: expected sizes of at least 1 and a width in whole heads, got {self}"
            )


@dataclasses.dataclass
class Cache:
    """Keys and values of the tokens so far: a tensor (layers, batch, heads, context, head width)."""

    keys: torch.Tensor
    values: torch.Tensor


class _Block(nn.Module):
    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.norm_1 = nn.LayerNorm(config.width)
        self.mix = nn.Linear(config.width, 3 * config.width)
        self.join = nn.Linear(config.width, config.width)
        self.norm_2 = nn.LayerNorm(config.width)
        self.widen = nn.Linear(config.width, 4 * config.width)
        self.narrow = nn.Linear(4 * config.width, config.width)

    def forward(
        self,
        x: torch.Tensor,
        mask: torch.Tensor | None,
        cache: tuple[torch.Tensor, torch.Tensor] | None,
        places: torch.Tensor,
    ) -> torch.Tensor:
        batch, length, width = x.shape
        mixed = self.mix(self.norm_1(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = (part.transpose(1, 2) for part in mixed.unbind(2))
        if cache is not None:
            rows = torch.arange(batch, device=x.device)[:, None]
            cache[0][rows, :, places] = key.transpose(1, 2)
            cache[1][rows, :, places] = value.transpose(1, 2)
            key, value = cache
        heads = F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=mask is None
        )
        x = x + self.join(heads.transpose(1, 2).reshape(batch, length, width))
        out: torch.Tensor = x + self.narrow(F.gelu(self.widen(self.norm_2(x))))
        return out


class Transformer(nn.Module):
    """A causal transformer over an episode's tokens.

    Args:
        config: Its size.
        outputs: Numbers that come out at each place.
    """

    def __init__(self, config: NetworkConfig, outputs: int) -> None:
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(len(VOCABULARY), config.width)
        self.places = nn.Embedding(config.context, config.width)
        self.blocks = nn.ModuleList(_Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, outputs)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Outputs at every place.

        Args:
            ids: Tokens, int64 (batch, length), padded behind.

        Returns:
            Tensor (batch, length, outputs); what is at a place has seen it and those before it.
        """
        places = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        return self._run(ids, places, None, None)

    def cache(self, batch: int) -> Cache:
        """An empty cache for so many episodes."""
        c = self.config
        shape = (c.layers, batch, c.heads, c.context, c.width // c.heads)
        like = self.head.weight
        return Cache(like.new_zeros(shape), like.new_zeros(shape))

    def extend(self, ids: torch.Tensor, starts: torch.Tensor, cache: Cache) -> torch.Tensor:
        """Outputs for more tokens of the episodes in a cache, which takes them in.

        Args:
            ids: Tokens, int64 (batch, length), padded behind: what stands for no token is
                overwritten by the next call that begins there.
            starts: Each episode's number of tokens before these, int64 (batch,).
            cache: Of this network.

        Returns:
            Tensor (batch, length, outputs).
        """
        places = starts[:, None] + torch.arange(ids.shape[1], device=ids.device)
        places = places.clamp_max(self.config.context - 1)
        seen = torch.arange(self.config.context, device=ids.device)
        mask = (seen[None, None] <= places[:, :, None])[:, None]
        return self._run(ids, places, mask, cache)

    def _run(
        self,
        ids: torch.Tensor,
        places: torch.Tensor,
        mask: torch.Tensor | None,
        cache: Cache | None,
    ) -> torch.Tensor:
        x = self.tokens(ids) + self.places(places)
        for number, block in enumerate(self.blocks):
            own = None if cache is None else (cache.keys[number], cache.values[number])
            x = block(x, mask, own, places)
        out: torch.Tensor = self.head(self.norm(x))
        return out


def make_actor(config: NetworkConfig, seed: int) -> Transformer:
    """An untrained actor: logits of `ACTIONS`."""
    return _made(config, len(ACTIONS), seed)


def make_critic(config: NetworkConfig, seed: int) -> Transformer:
    """An untrained critic: the reward that is still to come."""
    return _made(config, 1, seed)


def _made(config: NetworkConfig, outputs: int, seed: int) -> Transformer:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Transformer(config, outputs)
