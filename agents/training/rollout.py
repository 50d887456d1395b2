"""Episodes: a policy plays tasks before a judge, and every token of it is kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch

from kernelgym.agents.training.network import Cache, Transformer
from kernelgym.agents.training.script import RUN, STOP, Schedule, Schedules, ScriptError, read
from kernelgym.agents.training.tokens import ACTIONS, PAD, encode, feedback, prompt, words
from kernelgym.edits import Submit, WriteFile, render
from kernelgym.env import KernelEnv
from kernelgym.errors import EnvironmentFault, UsageError
from kernelgym.judge.verdict import Verdict
from kernelgym.judging import SupportsEvaluate, evaluate_batch
from kernelgym.tasks import Task
from kernelgym.workspace import MAIN_FILE

__all__ = [
    "MAX_WORDS",
    "Arena",
    "Episode",
    "Seat",
    "invalid_text",
    "play",
    "play_turn",
    "script_text",
    "speak",
]

MAX_WORDS = 12
"""Most words of a script."""

_ENDS = frozenset(encode((RUN, STOP)))


@dataclasses.dataclass
class Episode:
    """One episode, token by token.

    Attributes:
        task: The task's place in its arena.
        ids: All tokens.
        actions: Places of the tokens that the policy said.
        turns: For each of these, the turn that it belongs to, from 0.
        logps: For each of these, its log-probability when it was drawn.
        rewards: What each turn paid.
        verdicts: Verdicts used.
        best: The best verdict.
        invalid: Scripts that could not be applied.
        schedules: The schedule after each turn.
        fault: Why the judge could not judge, or `""`; such an episode is not learned from.
    """

    task: int
    ids: list[int]
    actions: list[int] = dataclasses.field(default_factory=list)
    turns: list[int] = dataclasses.field(default_factory=list)
    logps: list[float] = dataclasses.field(default_factory=list)
    rewards: list[float] = dataclasses.field(default_factory=list)
    verdicts: int = 0
    best: Verdict | None = None
    invalid: int = 0
    schedules: list[Schedule] = dataclasses.field(default_factory=list)
    fault: str = ""

    @property
    def total(self) -> float:
        """Sum of the rewards."""
        return sum(self.rewards)


class Arena:
    """Tasks, a judge and a reward: what episodes need.

    Args:
        tasks: What is played; each must be one that scripts can express.
        judge: Stays open; its `size` is what programs are traced at.
        reward: Name of the reward, paid as each verdict adds to the best.

    Raises:
        UsageError: A task is not expressible.
    """

    def __init__(self, tasks: Sequence[Task], judge: SupportsEvaluate, reward: str) -> None:
        self.tasks = tuple(tasks)
        self.judge = judge
        self.reward = reward
        self.schedules = tuple(Schedules.of(task.source(judge.size)) for task in self.tasks)


class Seat:
    """One episode under way.

    Args:
        arena: Where it is played.
        task: The task's place in the arena.
        turns: Turns of the episode, at least 1.
    """

    def __init__(self, arena: Arena, task: int, turns: int) -> None:
        self.schedules = arena.schedules[task]
        self.schedule = self.schedules.default
        self.episode = Episode(task, prompt(self.schedules, turns))
        self.left = turns
        # An environment wants two turns at least; an episode of one is ended below.
        self.env = KernelEnv(
            arena.tasks[task], max_turns=max(turns, 2), reward=arena.reward, judge=arena.judge
        )
        self.env.reset(options={"task": arena.tasks[task]})
        self.over = False

    def text(self, said: Sequence[int]) -> str:
        """The action that a script stands for; remembers the schedule that it leads to."""
        try:
            script = read(words(said))
            self.schedule = self.schedules.apply(self.schedule, script)
        except ScriptError as error:
            self.episode.invalid += 1
            return invalid_text(error)
        return script_text(self.schedules, self.schedule, script.stops, not self.episode.verdicts)

    def finish(self, reward: float, done: bool, verdict: Verdict | None) -> None:
        """Takes what a turn came to."""
        self.left -= 1
        if not done and self.left == 0 and self.episode.best is None:
            reward += self.env.reward.value(None)
        self.episode.rewards.append(reward)
        self.episode.schedules.append(self.schedule)
        self.over = done or self.left == 0
        if not self.over:
            self.episode.ids += feedback(verdict, self.left)


def invalid_text(error: ScriptError) -> str:
    """An action without an edit in it, which costs a turn and says why."""
    return f"No edit: {' '.join(str(error).split())}"


def script_text(schedules: Schedules, schedule: Schedule, stops: bool, first: bool) -> str:
    """The action that writes a schedule, or ends the episode.

    Args:
        schedules: The program's.
        schedule: What to write.
        stops: Whether to end the episode; nothing is then written unless nothing was before.
        first: Whether nothing was judged yet.
    """
    if stops and not first:
        return render(Submit())
    write = WriteFile(MAIN_FILE, schedules.text(schedule))
    return render(write, Submit()) if stops else render(write)


def play_turn(
    seats: Sequence[Seat], scripts: Sequence[Sequence[int]], judge: SupportsEvaluate
) -> None:
    """Plays one turn of several episodes, whose candidates are judged as one batch."""
    moves = [seat.env.plan(seat.text(said)) for seat, said in zip(seats, scripts, strict=True)]
    wanted = [place for place, move in enumerate(moves) if move.wants_verdict]
    jobs = [(seats[place].env.task, moves[place].workspace) for place in wanted]
    judged = dict(zip(wanted, evaluate_batch(judge, jobs), strict=True))
    for place, (seat, move) in enumerate(zip(seats, moves, strict=True)):
        verdict = judged.get(place)
        if isinstance(verdict, EnvironmentFault):
            seat.episode.fault = str(verdict)
            seat.over = True
            continue
        _, reward, terminated, truncated, info = seat.env.complete(move, verdict)
        seat.episode.verdicts += verdict is not None
        seat.episode.best = info["best_verdict"]
        seat.finish(float(reward), terminated or truncated, verdict)


@torch.no_grad()
def play(
    actor: Transformer,
    arena: Arena,
    tasks: Sequence[int],
    turns: int,
    *,
    allowed: Sequence[int],
    generator: torch.Generator,
    greedy: bool = False,
) -> list[Episode]:
    """Plays one episode of each task, all side by side.

    Args:
        actor: The policy.
        arena: Tasks and judge.
        tasks: Places of tasks in the arena; one may come several times.
        turns: Turns of an episode.
        allowed: Ids of the words that the policy may say.
        generator: What words are drawn with.
        greedy: Whether the likeliest word is said rather than one drawn.

    Raises:
        UsageError: The network's context is too short for such episodes.
    """
    seats = [Seat(arena, task, turns) for task in tasks]
    longest = max(len(seat.episode.ids) for seat in seats) + turns * (MAX_WORDS + 5)
    if longest > actor.config.context:
        raise UsageError(
            f"context: expected at least {longest} tokens for {turns} turns, "
            f"got {actor.config.context}"
        )
    cache = actor.cache(len(seats))
    known = [0] * len(seats)
    for turn in range(turns):
        going = [place for place, seat in enumerate(seats) if not seat.over]
        starts = [len(seat.episode.ids) for seat in seats]
        logps = _speak(
            actor,
            [seat.episode.ids for seat in seats],
            known,
            [not seat.over for seat in seats],
            cache,
            allowed,
            generator,
            greedy,
        )
        scripts = []
        for place in going:
            episode = seats[place].episode
            said = range(starts[place], len(episode.ids))
            episode.actions += said
            episode.turns += [turn] * len(said)
            episode.logps += logps[place]
            scripts.append(episode.ids[starts[place] :])
        play_turn([seats[place] for place in going], scripts, arena.judge)
    return [seat.episode for seat in seats]


@torch.no_grad()
def speak(
    actor: Transformer,
    ids: list[int],
    known: int,
    cache: Cache,
    *,
    allowed: Sequence[int],
    generator: torch.Generator,
    greedy: bool = False,
) -> tuple[list[int], int]:
    """Says one script of one episode.

    Args:
        actor: The policy.
        ids: The episode so far, to which the script is added.
        known: How many of its tokens the cache has seen.
        cache: The episode's, of one row.
        allowed: As for `play`.
        generator: As for `play`.
        greedy: As for `play`.

    Returns:
        The script's ids, and how many tokens the cache has seen now.
    """
    start, counts = len(ids), [known]
    _speak(actor, [ids], counts, [True], cache, allowed, generator, greedy)
    return ids[start:], counts[0]


def _speak(
    actor: Transformer,
    ids: Sequence[list[int]],
    known: list[int],
    speaking: list[bool],
    cache: Cache,
    allowed: Sequence[int],
    generator: torch.Generator,
    greedy: bool,
) -> list[list[float]]:
    """Adds a script to each episode that speaks; its words' log-probabilities."""
    barred = torch.ones(len(ACTIONS), dtype=torch.bool)
    barred[list(allowed)] = False
    said_logps: list[list[float]] = [[] for _ in ids]
    for _ in range(MAX_WORDS):
        if not any(speaking):
            break
        logits = _next_logits(actor, ids, known, cache)
        logps = logits.masked_fill(barred, float("-inf")).log_softmax(-1)
        if greedy:
            chosen = logps.argmax(-1)
        else:
            chosen = torch.multinomial(logps.exp(), 1, generator=generator)[:, 0]
        for place, row in enumerate(ids):
            if speaking[place]:
                word = int(chosen[place])
                row.append(word)
                said_logps[place].append(float(logps[place, word]))
                speaking[place] = word not in _ENDS
    return said_logps


def _next_logits(
    actor: Transformer, ids: Sequence[list[int]], known: list[int], cache: Cache
) -> torch.Tensor:
    """Feeds the cache what it has not seen; logits behind each episode's last token."""
    device = actor.head.weight.device
    # An episode that waits is fed its last token again, which changes nothing.
    starts = [min(count, len(row) - 1) for count, row in zip(known, ids, strict=True)]
    fresh = [row[start:] for start, row in zip(starts, ids, strict=True)]
    length = max(map(len, fresh))
    padded = [[*part, *[PAD] * (length - len(part))] for part in fresh]
    out = actor.extend(
        torch.tensor(padded, device=device), torch.tensor(starts, device=device), cache
    )
    ends = torch.tensor([len(part) - 1 for part in fresh], device=device)
    known[:] = [len(row) for row in ids]
    return out[torch.arange(len(ids), device=device), ends].float().cpu()
