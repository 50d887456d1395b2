"""The small policy: a transformer of a few million parameters that schedules kernels.

It reads the reference program out of the observation, compiles it to kernels as `search` does, and
says in a script of a few words how they are scheduled (`kernelgym.agents.training.script`). What the
judge says of one turn it reads before the next. How it is trained is told in `docs/training.md`.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import torch

from kernelgym.agents.training.checkpoint import load
from kernelgym.agents.training.network import Cache
from kernelgym.agents.training.rollout import MAX_WORDS, invalid_text, script_text, speak
from kernelgym.agents.training.script import KERNELS, Schedule, Schedules, ScriptError, read
from kernelgym.agents.training.tokens import feedback, prompt, words
from kernelgym.edits import Submit, render
from kernelgym.errors import TaskFormatError, UsageError

__all__ = ["Arguments", "SmallPolicy"]


@dataclasses.dataclass(frozen=True)
class Arguments:
    """What `SmallPolicy` can be told.

    Attributes:
        checkpoint: A stage's `checkpoint.safetensors`.
        seed: Of the words that it draws.
        greedy: Whether it says the likeliest word rather than one drawn.
        turns: After how many it submits; 0 for as many as it was trained for.
    """

    checkpoint: str = ""
    seed: int = 0
    greedy: bool = False
    turns: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if not self.checkpoint or not Path(self.checkpoint).is_file():
            raise UsageError(
                f"checkpoint: expected a file that a training wrote, got {self.checkpoint!r}"
            )
        if self.turns < 0:
            raise UsageError(f"turns: expected 0 or more, got {self.turns}")


@dataclasses.dataclass
class _Episode:
    """The state of one episode."""

    schedules: Schedules
    schedule: Schedule
    ids: list[int]
    cache: Cache
    known: int = 0
    left: int = 0
    judged: bool = False


class SmallPolicy:
    """Plays a trained policy.

    Args:
        arguments: All arguments as one record.
        **fields: Single fields of `Arguments`, over those of `arguments`.

    Raises:
        UsageError: There is no checkpoint, or it is something else.
    """

    def __init__(self, arguments: Arguments | None = None, **fields: Any) -> None:
        if arguments is None:
            arguments = Arguments(**fields)
        self.arguments = dataclasses.replace(arguments, **fields)
        self._learner = load(self.arguments.checkpoint)
        self._generator = torch.Generator().manual_seed(self.arguments.seed)
        self._episode: _Episode | None = None
        self.said: tuple[str, ...] = ()
        """The last script."""
        self.gave_up = ""
        """Why there is nothing to send in this episode, or `""`."""

    def reset(self, info: dict[str, Any]) -> None:
        """Forgets the last episode."""
        self._episode = None
        self.said = ()
        self.gave_up = ""

    def __call__(self, observation: Any, info: dict[str, Any]) -> str:
        """The next version, or `submit`."""
        if self._episode is None:
            try:
                self._episode = self._begin(Schedules.of(observation["task"]))
            except (ScriptError, TaskFormatError, UsageError) as error:
                self.gave_up = str(error)
                return render(Submit())
        else:
            self._hear(self._episode, info)
        return self._say(self._episode)

    def _begin(self, schedules: Schedules) -> _Episode:
        turns = self.arguments.turns or self._learner.turns
        known = sum(word in KERNELS for word in words(self._learner.language))
        if len(schedules.kernels) > known:
            raise ScriptError(
                f"program: expected at most {known} kernels, got {len(schedules.kernels)}"
            )
        ids = prompt(schedules, turns)
        cache = self._learner.actor.cache(1)
        return _Episode(schedules, schedules.default, ids, cache, left=turns)

    def _hear(self, episode: _Episode, info: dict[str, Any]) -> None:
        """Takes in what came of the last script."""
        episode.left = max(episode.left - 1, 0)
        verdict = None if info["edit_error"] else info["verdict"]
        episode.judged = episode.judged or verdict is not None
        episode.ids += feedback(verdict, episode.left)

    def _say(self, episode: _Episode) -> str:
        context = self._learner.config.context
        if not episode.left or len(episode.ids) + MAX_WORDS + 5 > context:
            return render(Submit())
        said, episode.known = speak(
            self._learner.actor,
            episode.ids,
            episode.known,
            episode.cache,
            allowed=self._learner.language,
            generator=self._generator,
            greedy=self.arguments.greedy,
        )
        self.said = words(said)
        try:
            script = read(self.said)
            episode.schedule = episode.schedules.apply(episode.schedule, script)
        except ScriptError as error:
            return invalid_text(error)
        return script_text(episode.schedules, episode.schedule, script.stops, not episode.judged)
