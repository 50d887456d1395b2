"""`run_episode`: one agent, one episode."""

from __future__ import annotations

import dataclasses
import pathlib
import traceback
from collections.abc import Callable
from typing import Any, Protocol

import gymnasium as gym

from kernelgym.errors import AgentError, EnvironmentFault
from kernelgym.judge.verdict import Verdict
from kernelgym.workspace import Workspace

__all__ = ["Agent", "EpisodeResult", "Turn", "run_episode"]


class Agent(Protocol):
    """Anything that maps an observation to an edit text.

    It may also have:

    * `reset(info)`, called when an episode starts;
    * `save(path)` and `load(path)`, which keep what it has learned in a file or folder of that name,
      for runs that go on later;
    * `usage`, a `kernelgym.budget.Usage` of what it has used since it was made.
    """

    def __call__(self, observation: Any, info: dict[str, Any], /) -> str:
        """The next action."""


@dataclasses.dataclass(frozen=True)
class Turn:
    """One turn: what the agent sent, and what came of it.

    Attributes:
        action: The agent's text.
        reward: What it paid.
        edit_error: Why it did not apply, or `""`.
        verdict: The last verdict at that time, or None.
        workspace: The files after it.
    """

    action: str = dataclasses.field(repr=False)
    reward: float
    edit_error: str
    verdict: Verdict | None = dataclasses.field(repr=False)
    workspace: Workspace = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class EpisodeResult:
    """A whole episode.

    Attributes:
        task_id: The task.
        turns: What happened, turn by turn.
        total_reward: Sum over the turns.
        best_verdict: The best one, or None if there was none.
        terminated: Whether the agent ended it.
        truncated: Whether the turn limit did.
    """

    task_id: str
    turns: tuple[Turn, ...]
    total_reward: float
    best_verdict: Verdict | None = dataclasses.field(repr=False)
    terminated: bool
    truncated: bool

    @property
    def solved(self) -> bool:
        """Whether a candidate was correct."""
        return self.best_verdict is not None and self.best_verdict.correct


def run_episode(
    env: gym.Env[Any, str],
    agent: Agent,
    seed: int | None = None,
    options: dict[str, Any] | None = None,
) -> EpisodeResult:
    """Plays one episode to its end.

    Args:
        env: A `KernelEnv`, bare or wrapped.
        agent: Called with each observation and info; its `reset(info)`, if it has one, first.
        seed: As for `env.reset`.
        options: As for `env.reset`.

    Raises:
        AgentError: The agent raised, or returned something that is no text.
        EnvironmentFault: The harness failed during a judgement.
    """
    observation, info = env.reset(seed=seed, options=options)
    start = getattr(agent, "reset", None)
    if start is not None:
        _asked("reset", lambda: start(info))
    turns: list[Turn] = []
    terminated = truncated = False
    while not (terminated or truncated):
        action = _action(agent, observation, info)
        observation, reward, terminated, truncated, info = env.step(action)
        turns.append(
            Turn(action, float(reward), info["edit_error"], info["verdict"], info["workspace"])
        )
    return EpisodeResult(
        task_id=info["task_id"],
        turns=tuple(turns),
        total_reward=sum(turn.reward for turn in turns),
        best_verdict=info["best_verdict"],
        terminated=terminated,
        truncated=truncated,
    )


def _action(agent: Agent, observation: Any, info: dict[str, Any]) -> str:
    where = f"turn {info['turn'] + 1}"
    action = _asked(where, lambda: agent(observation, info))
    if not isinstance(action, str):
        raise AgentError(f"{where}: expected a str, got {type(action).__name__}")
    return action


def _asked(where: str, question: Callable[[], Any]) -> Any:
    """What the agent answers; what it raises instead becomes an AgentError of one line."""
    try:
        return question()
    except EnvironmentFault:
        raise  # an agent may judge by itself, and is not to blame when that cannot be done
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        said = " ".join(f"{type(error).__name__}: {error}".split())
        place = f"{pathlib.Path(last.filename).name}:{last.lineno}"
        raise AgentError(f"{where}: {said} ({place})") from error
