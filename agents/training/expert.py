"""Expert trajectories: what `search` finds on training tasks, played again as short episodes."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence

from kernelgym.agents.kernels.kernel import Knob
from kernelgym.agents.kernels.program import CompiledProgram
from kernelgym.agents.search import Search
from kernelgym.agents.training.rollout import Arena, Episode, Seat, play_turn
from kernelgym.agents.training.script import KERNELS, RUN, STOP, Schedule
from kernelgym.agents.training.tokens import encode
from kernelgym.env import KernelEnv
from kernelgym.errors import EnvironmentFault
from kernelgym.runner import run_episode

__all__ = ["Trials", "demonstrations", "search_trials"]

_SEARCH_TURNS = 32


@dataclasses.dataclass(frozen=True)
class _Restricted(CompiledProgram):
    """A program with those choices only that a smaller language can say."""

    choices: tuple[tuple[str, tuple[int | str, ...]], ...] = ()

    def knobs(self) -> dict[str, Knob]:
        """See `CompiledProgram.knobs`."""
        short = {name: name.rpartition(".")[2] for name, _ in self.choices}
        return {name: Knob(short[name], values) for name, values in self.choices}


class _Expert(Search):
    """`search` in the space of an arena's task; remembers what it sent."""

    def __init__(self, program: _Restricted) -> None:
        super().__init__()
        self._program = program
        self.sent: list[Schedule] = []

    def compiled(self, task: str) -> CompiledProgram:
        """The restricted program."""
        return self._program

    def _send(self, climb: object, choice: Mapping[str, int | str]) -> str:
        knobs = self._program.knobs()
        self.sent.append(tuple((n, choice.get(n, k.choices[0])) for n, k in knobs.items()))
        return super()._send(climb, dict(choice))  # type: ignore[arg-type]


@dataclasses.dataclass(frozen=True)
class Trials:
    """What a search came to.

    Attributes:
        steps: The schedules that were each better than those before, the best last.
        verdicts: Verdicts used.
    """

    steps: tuple[Schedule, ...]
    verdicts: int


def search_trials(arena: Arena, task: int, assignments: Sequence[str]) -> Trials:
    """Lets `search` climb on a task, within what a language can say.

    Raises:
        EnvironmentFault: The judge could not judge.
    """
    schedules = arena.schedules[task]
    space = list(schedules.space(assignments))
    knobs = schedules.program.knobs()
    values = {
        name: tuple(dict.fromkeys(dict(schedule)[name] for schedule in space)) for name in knobs
    }
    # What no block can have is no choice of an expert's; it demonstrates how to get away from it.
    sane = tuple(
        (name, tuple(v for v in values[name] if v in knob.choices)) for name, knob in knobs.items()
    )
    program = _Restricted(schedules.program.source, schedules.program.plans, sane)
    expert = _Expert(program)
    env = KernelEnv(
        arena.tasks[task], max_turns=_SEARCH_TURNS, reward=arena.reward, judge=arena.judge
    )
    result = run_episode(env, expert)
    steps: list[Schedule] = []
    best = float("inf")
    for schedule, turn in zip(expert.sent, result.turns, strict=False):
        verdict = turn.verdict
        if verdict is None or not verdict.correct or verdict.timing is None:
            continue
        if verdict.timing.candidate.median < best:
            best = verdict.timing.candidate.median
            steps.append(schedule)
    return Trials(tuple(steps), len(result.turns))


def demonstrations(
    arena: Arena,
    task: int,
    trials: Trials,
    turns: int,
    assignments: Sequence[str],
    repairs: int,
    rng: random.Random,
) -> list[Episode]:
    """Episodes that are worth imitating, played through the environment.

    One goes straight to the best schedule and stops; one takes the search's last improvements in
    turn. The others start from a schedule drawn at random, which is not imitated, and repair it.

    Args:
        arena: Tasks and judge.
        task: The task's place.
        trials: What `search_trials` found; without a step there is nothing to show.
        turns: Most turns of an episode.
        assignments: What random schedules are made of.
        repairs: How many start at random; none where there is but one turn.
        rng: Draws them.
    """
    if not trials.steps:
        return []
    schedules = arena.schedules[task]
    best = trials.steps[-1]
    paths: list[tuple[list[Schedule], int]] = [([best], 0)]
    if turns > 1:
        climb = list(trials.steps[-turns:])
        if len(climb) > 1:
            paths.append((climb, 0))
        space = list(schedules.space(assignments))
        paths += [([rng.choice(space), best], 1) for _ in range(repairs)]
    language = {*KERNELS, *assignments, RUN}
    episodes: list[Episode] = []
    for path, unsaid in paths:
        seat = Seat(arena, task, turns)
        scripts = [
            schedules.words(before, after)
            for before, after in zip([schedules.default, *path], path, strict=False)
        ]
        # The way back to a value that a template begins with may have no word.
        if not all(set(script) <= language for script in scripts):
            continue
        for script in scripts:
            _say(seat, encode(script), arena)
        if not seat.over:
            _say(seat, encode([STOP]), arena)
        episode = seat.episode
        if episode.fault:
            raise EnvironmentFault(episode.fault)
        shown = [place for place, turn in enumerate(episode.turns) if turn >= unsaid]
        episode.actions = [episode.actions[place] for place in shown]
        episode.turns = [episode.turns[place] for place in shown]
        episode.logps = [0.0] * len(shown)
        episodes.append(episode)
    return episodes


def _say(seat: Seat, said: list[int], arena: Arena) -> None:
    episode = seat.episode
    turn = len(episode.rewards)
    for word in said:
        episode.actions.append(len(episode.ids))
        episode.turns.append(turn)
        episode.logps.append(0.0)
        episode.ids.append(word)
    play_turn([seat], [said], arena.judge)
