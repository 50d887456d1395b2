"""Rewards by name: pure functions of a verdict and the best verdict before it.

Every reward looks at the *low* end of a speedup's interval, so that noise earns nothing. An episode
pays either what each verdict adds to the best so far (`reward_mode="delta"`), or the best verdict's
score when it ends (`"terminal"`); both sum to the best verdict's score.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from kernelgym.errors import ConfigError
from kernelgym.judge.verdict import Speedup, Verdict

__all__ = ["REWARDS", "REWARD_MODES", "Reward", "better", "get"]

REWARD_MODES = ("delta", "terminal")

FASTER = 1.05
"""How much faster than a baseline counts as faster, as in CUDA Agent."""

SLOWEST = 0.01
"""Where logarithms stop: a speedup this low scores like a kernel that is not correct."""

MEMORY_WEIGHT = 0.1
ENERGY_WEIGHT = 0.25


@dataclasses.dataclass(frozen=True)
class Reward:
    """A score of verdicts, and what an episode pays by it.

    Attributes:
        name: The name it is asked for by.
        score: The value of a verdict that the judge gave.
        worst: The value of having no verdict at all, at most any score.
    """

    name: str
    score: Callable[[Verdict], float]
    worst: float

    def value(self, verdict: Verdict | None) -> float:
        """The score of a verdict, or of having none."""
        return self.worst if verdict is None else self.score(verdict)

    def __call__(self, verdict: Verdict, best: Verdict | None) -> float:
        """What a verdict pays: its score if it is the first, else what it adds to the best."""
        if best is None:
            return self.score(verdict)
        return max(0.0, self.score(verdict) - self.score(best))


def get(name: str) -> Reward:
    """The reward of that name.

    Raises:
        ConfigError: There is none.
    """
    if name not in REWARDS:
        raise ConfigError(f"reward: expected one of {', '.join(sorted(REWARDS))}, got {name!r}")
    return REWARDS[name]


def better(reward: Reward, verdict: Verdict, best: Verdict | None) -> Verdict:
    """The better of two: by score, then by speedup against eager; the earlier one if equal."""
    if best is None:
        return verdict
    return max((best, verdict), key=lambda one: (reward.score(one), _low(_eager(one))))


def milestone(verdict: Verdict) -> float:
    """CUDA Agent's levels.

    -1 not correct; 1 correct; 2 also over 5 % faster than eager; 3 also than compile.
    """
    if not verdict.correct:
        return -1.0
    if _low(_eager(verdict)) <= FASTER:
        return 1.0
    return 3.0 if _low(_compile(verdict)) > FASTER else 2.0


def speedup(verdict: Verdict) -> float:
    """The speedup against eager; 0 if not correct."""
    return _low(_eager(verdict)) if verdict.correct else 0.0


def log_speedup(verdict: Verdict) -> float:
    """The natural logarithm of the speedup against eager, at least ln 0.01 (also: not correct)."""
    return math.log(max(SLOWEST, speedup(verdict)))


def kevin(verdict: Verdict) -> float:
    """Kevin-32B's: 0.3 for being correct, plus the speedup against eager."""
    return 0.3 + speedup(verdict) if verdict.correct else 0.0


def drkernel(verdict: Verdict) -> float:
    """Dr. Kernel's: 1 for correct, the speedup up to 3, and the own share of device time."""
    if not verdict.correct:
        return 0.0
    own = verdict.coverage.own if verdict.coverage is not None else 0.0
    return 1.0 + min(speedup(verdict), 3.0) + own


def efficiency(verdict: Verdict) -> float:
    """`log_speedup` minus weighted logarithms of what the candidate takes over what eager takes.

    0.1 times the logarithm of the ratio of peak memory, 0.25 times that of energy; each only where
    both sides are known. Never below `log_speedup` of an incorrect kernel.
    """
    score = log_speedup(verdict)
    if not verdict.correct:
        return score
    if verdict.peak_memory and verdict.peak_memory_eager:
        score -= MEMORY_WEIGHT * math.log(verdict.peak_memory / verdict.peak_memory_eager)
    # The high end of the candidate's energy: noise earns nothing here either.
    energy = verdict.energy.high if verdict.energy is not None else 0.0
    energy_eager = verdict.energy_eager.median if verdict.energy_eager is not None else 0.0
    if energy > 0 and energy_eager > 0:
        score -= ENERGY_WEIGHT * math.log(energy / energy_eager)
    return max(score, math.log(SLOWEST))


REWARDS: dict[str, Reward] = {
    reward.name: reward
    for reward in (
        Reward("milestone", milestone, -1.0),
        Reward("speedup", speedup, 0.0),
        Reward("log_speedup", log_speedup, math.log(SLOWEST)),
        Reward("kevin", kevin, 0.0),
        Reward("drkernel", drkernel, 0.0),
        Reward("efficiency", efficiency, math.log(SLOWEST)),
    )
}


def _eager(verdict: Verdict) -> Speedup | None:
    return verdict.timing.speedup_eager if verdict.timing is not None else None


def _compile(verdict: Verdict) -> Speedup | None:
    return verdict.timing.speedup_compile if verdict.timing is not None else None


def _low(value: Speedup | None) -> float:
    return value.low if value is not None else 0.0
