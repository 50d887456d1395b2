"""Wrappers: one that shows texts only, and one that records traces."""

from __future__ import annotations

import os
from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from kernelgym.env import KernelEnv, Observation
from kernelgym.errors import ConfigError
from kernelgym.judge.verdict import Verdict
from kernelgym.observation import MAX_PROMPT, render_prompt
from kernelgym.spaces import SourceText
from kernelgym.traces import EpisodeRecord, StepRecord, TraceWriter

__all__ = ["RecordTrace", "TextOnly"]


class TextOnly(gym.ObservationWrapper[str, str, Observation], RecordConstructorArgs):
    """Makes each observation one prompt: how to answer, the task, the files, the feedback.

    Args:
        env: The environment.
    """

    def __init__(self, env: gym.Env[Observation, str]) -> None:
        RecordConstructorArgs.__init__(self)
        gym.ObservationWrapper.__init__(self, env)
        self.observation_space = SourceText(MAX_PROMPT)

    def observation(self, observation: Observation) -> str:
        """The observation as a prompt."""
        return render_prompt(observation)


class RecordTrace(gym.Wrapper[Any, str, Any, str], RecordConstructorArgs):
    """Writes each episode to a JSONL file (`kernelgym.traces`), turn by turn.

    Args:
        env: The environment, bare or wrapped.
        path: The file; one that exists is continued.

    Raises:
        ConfigError: The environment is not a `KernelEnv`.
        RecordError: The file holds something else than traces.
    """

    def __init__(self, env: gym.Env[Any, str], path: str | os.PathLike[str]) -> None:
        RecordConstructorArgs.__init__(self, path=os.fspath(path))
        gym.Wrapper.__init__(self, env)
        if not isinstance(env.unwrapped, KernelEnv):
            raise ConfigError(f"env: expected a KernelEnv, got {type(env.unwrapped).__name__}")
        self._kernel_env = env.unwrapped
        self._writer = TraceWriter(path)
        self._episode = self._writer.next_episode - 1
        self._verdict: Verdict | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode and its trace."""
        observation, info = self.env.reset(seed=seed, options=options)
        env = self._kernel_env
        self._episode += 1
        self._writer.write(
            EpisodeRecord(
                episode=self._episode,
                task=info["task_id"],
                seed=seed,
                workspace_hash=info["workspace"].hash,
                max_turns=env.max_turns,
                reward=env.reward.name,
                reward_mode=env.reward_mode,
                config=env.config,
            )
        )
        self._verdict = None
        return observation, info

    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Takes a turn and records it."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        judged = info["verdict"] is not self._verdict
        self._verdict = info["verdict"]
        self._writer.write(
            StepRecord(
                episode=self._episode,
                turn=info["turn"],
                action=action,
                edit_error=info["edit_error"],
                workspace_hash=info["workspace"].hash,
                reward=float(reward),
                terminated=terminated,
                truncated=truncated,
                verdict=info["verdict"] if judged else None,
                usage=info.get("usage") or None,
            )
        )
        return observation, float(reward), terminated, truncated, info

    def close(self) -> None:
        """Closes the file and the environment."""
        self._writer.close()
        super().close()
