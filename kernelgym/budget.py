"""What an episode may take, what its agent has used, and the wrapper that holds both together."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from kernelgym.errors import ConfigError

if TYPE_CHECKING:
    from kernelgym.runner import Agent

__all__ = ["Budget", "Metered", "Usage", "usage_of"]

_TURNS_PER_VERDICT = 2


@dataclasses.dataclass(frozen=True)
class Usage:
    """What an agent has used. Agents that use any of it have an attribute `usage`, which only grows.

    Attributes:
        requests: Answers asked of a language model.
        prompt_tokens: Tokens that it read.
        completion_tokens: Tokens that it wrote.
        cost: Money, in the currency that the agent counts in.
        verdicts: Verdicts that the agent had from a judge by itself, beside those of its turns.
    """

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    verdicts: int = 0

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.prompt_tokens + self.completion_tokens

    def __bool__(self) -> bool:
        """Whether anything was used."""
        return any(_values(self))

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(a + b for a, b in zip(_values(self), _values(other), strict=True)))

    def __sub__(self, other: Usage) -> Usage:
        return Usage(*(a - b for a, b in zip(_values(self), _values(other), strict=True)))


@dataclasses.dataclass(frozen=True)
class Budget:
    """What one episode may take at most; None: without a limit.

    Attributes:
        verdicts: Verdicts, including those that the agent had from a judge by itself.
        tokens: Tokens read and written.
        cost: Money, see `Usage`.
        seconds: Wall-clock seconds.

    Raises:
        ConfigError: A limit is not above 0.
    """

    verdicts: int | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        """Refuse limits that leave nothing."""
        for field in dataclasses.fields(self):
            limit = getattr(self, field.name)
            if limit is not None and not limit > 0:
                raise ConfigError(f"{field.name}: expected more than 0, got {limit}")

    @property
    def turns(self) -> int | None:
        """Turns that go with the verdicts: some edits do not apply, and cost no verdict."""
        if self.verdicts is None:
            return None
        return max(2, _TURNS_PER_VERDICT * self.verdicts)

    def spent(self, used: Usage, verdicts: int, seconds: float) -> str:
        """Which limit is reached, or `""`."""
        reached = (
            ("verdicts", self.verdicts, verdicts + used.verdicts),
            ("tokens", self.tokens, used.tokens),
            ("cost", self.cost, used.cost),
            ("seconds", self.seconds, seconds),
        )
        return next((name for name, limit, have in reached if limit and have >= limit), "")


def usage_of(agent: object) -> Usage:
    """What an agent says it has used so far; nothing where it does not say."""
    usage = getattr(agent, "usage", None)
    return usage if isinstance(usage, Usage) else Usage()


class Metered(gym.Wrapper[Any, str, Any, str]):
    """Ends an episode when its budget is spent, and says what each turn used.

    To the info come `budget`, `config` (how candidates are judged), `verdicts_left` (None: no
    limit), `usage` (of this turn) and `spent` (which limit ended the episode, or `""`); where
    verdicts are limited, feedback says how many are left.

    Args:
        env: A `KernelEnv`, bare or wrapped, with dictionaries for observations.
        budget: Of each episode.
        agent: Whose usage counts.
    """

    def __init__(self, env: gym.Env[Any, str], budget: Budget, agent: Agent) -> None:
        super().__init__(env)
        self.budget = budget
        self._agent = agent
        self._begin()

    def _begin(self) -> None:
        self._verdicts = 0
        self._verdict: object = None
        self._used_before = self._used_last = usage_of(self._agent)
        self._began = time.monotonic()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode with its budget whole."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._begin()
        return self._told(observation), self._counted(info, Usage(), "")

    def step(self, action: str) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Takes a turn, which is the last one where it spends the budget."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._verdicts += info["verdict"] is not self._verdict
        self._verdict = info["verdict"]
        now = usage_of(self._agent)
        turn, self._used_last = now - self._used_last, now
        seconds = time.monotonic() - self._began
        spent = self.budget.spent(now - self._used_before, self._verdicts, seconds)
        truncated = truncated or (bool(spent) and not terminated)
        if not (terminated or truncated):
            observation = self._told(observation)
        return observation, reward, terminated, truncated, self._counted(info, turn, spent)

    def _left(self) -> int | None:
        if self.budget.verdicts is None:
            return None
        used = self._verdicts + (self._used_last - self._used_before).verdicts
        return max(0, self.budget.verdicts - used)

    def _told(self, observation: Any) -> Any:
        left = self._left()
        if left is None:
            return observation
        return {**observation, "feedback": f"{observation['feedback']}\nVerdicts left: {left}"}

    def _counted(self, info: dict[str, Any], turn: Usage, spent: str) -> dict[str, Any]:
        return {
            **info,
            "budget": self.budget,
            "config": getattr(self.env.unwrapped, "config", None),
            "verdicts_left": self._left(),
            "usage": turn,
            "spent": spent,
        }


def _values(usage: Usage) -> tuple[Any, ...]:
    return dataclasses.astuple(usage)
