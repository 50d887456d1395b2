"""What a policy is worth on held-out tasks, and what drawing schedules at random is worth there."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

import torch

from kernelgym.agents.training.network import Transformer
from kernelgym.agents.training.rollout import Arena, Episode, Seat, play, play_turn
from kernelgym.agents.training.tokens import encode
from kernelgym.errors import EnvironmentFault
from kernelgym.rewards import FASTER

__all__ = ["Evaluation", "evaluate", "evaluate_random"]


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Scores over episodes.

    Attributes:
        episodes: How many there were.
        reward: Mean total reward.
        passed: Share with a correct kernel.
        faster_eager: Share with a best kernel over 5 % faster than eager.
        faster_compile: The same against `torch.compile`.
        invalid: Mean number of scripts that could not be applied.
        verdicts: Verdicts used, all together.
        times: What the times of best kernels are: `modelled`, `replayed`, `measured`.
        by_task: Task id -> mean total reward.
    """

    episodes: int
    reward: float
    passed: float
    faster_eager: float
    faster_compile: float
    invalid: float
    verdicts: int
    times: tuple[str, ...]
    by_task: dict[str, float]


def evaluate(
    actor: Transformer,
    arena: Arena,
    turns: int,
    episodes: int,
    *,
    allowed: Sequence[int],
    seed: int,
    greedy: bool = False,
) -> Evaluation:
    """Plays every task of an arena.

    Args:
        actor: The policy.
        arena: The tasks.
        turns: Turns of an episode.
        episodes: Episodes of each task.
        allowed: Ids of the words that the policy may say.
        seed: Of what is drawn.
        greedy: See `play`.

    Raises:
        EnvironmentFault: The judge could not judge.
    """
    generator = torch.Generator().manual_seed(seed)
    order = [task for task in range(len(arena.tasks)) for _ in range(episodes)]
    played = play(actor, arena, order, turns, allowed=allowed, generator=generator, greedy=greedy)
    return _scored(arena, played)


def evaluate_random(
    arena: Arena, turns: int, episodes: int, assignments: Sequence[str], seed: int
) -> Evaluation:
    """The same for schedules drawn at random, all of them valid scripts and none twice.

    Raises:
        EnvironmentFault: The judge could not judge.
    """
    rng = random.Random(seed)
    played: list[Episode] = []
    for task, schedules in enumerate(arena.schedules):
        space = list(schedules.space(assignments))
        for _ in range(episodes):
            seat = Seat(arena, task, turns)
            before = schedules.default
            for schedule in rng.sample(space, min(turns, len(space))):
                said = encode(schedules.words(before, schedule))
                seat.episode.ids += said
                play_turn([seat], [said], arena.judge)
                before = schedule
            played.append(seat.episode)
    return _scored(arena, played)


def _scored(arena: Arena, episodes: Sequence[Episode]) -> Evaluation:
    faults = [episode.fault for episode in episodes if episode.fault]
    if faults:
        raise EnvironmentFault(f"{len(faults)} episodes were not judged: {faults[0]}")
    best = [episode.best for episode in episodes]
    timings = [v.timing for v in best if v is not None and v.correct and v.timing is not None]
    eager = [t.speedup_eager.low for t in timings if t.speedup_eager is not None]
    compiled = [t.speedup_compile.low for t in timings if t.speedup_compile is not None]
    totals: dict[str, list[float]] = {}
    for episode in episodes:
        totals.setdefault(arena.tasks[episode.task].id, []).append(episode.total)
    count = len(episodes)
    return Evaluation(
        episodes=count,
        reward=sum(episode.total for episode in episodes) / count,
        passed=sum(v is not None and v.correct for v in best) / count,
        faster_eager=sum(low > FASTER for low in eager) / count,
        faster_compile=sum(low > FASTER for low in compiled) / count,
        invalid=sum(episode.invalid for episode in episodes) / count,
        verdicts=sum(episode.verdicts for episode in episodes),
        times=tuple(sorted({timing.candidate.source for timing in timings})),
        by_task={task: sum(rewards) / len(rewards) for task, rewards in totals.items()},
    )
