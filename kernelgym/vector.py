"""`KernelVectorEnv`: several environments whose candidates are judged as one batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array

from kernelgym.config import JudgeConfig
from kernelgym.env import KernelEnv, Move, StepResult
from kernelgym.errors import ConfigError, EnvironmentFault, UsageError
from kernelgym.judge.verdict import Verdict
from kernelgym.judging import LazyJudge, SupportsEvaluate, evaluate_batch
from kernelgym.registration import ENV_IDS

__all__ = ["KernelVectorEnv", "make_vec"]

_CONFIG_FIELDS = {field.name for field in dataclasses.fields(JudgeConfig)}

VectorStepResult: TypeAlias = tuple[
    dict[str, Any],
    npt.NDArray[np.float64],
    npt.NDArray[np.bool_],
    npt.NDArray[np.bool_],
    dict[str, Any],
]


def make_vec(env_id: str, num_envs: int, **kwargs: Any) -> KernelVectorEnv:
    """Makes a vector environment of one of kernelgym's ids.

    Args:
        env_id: Such as `"KernelBench-L1-v0"`.
        num_envs: How many episodes run side by side, at least 1.
        **kwargs: As for `KernelVectorEnv`.

    Raises:
        ConfigError: An argument is not accepted, or the id is not one of kernelgym's.
    """
    if env_id.removeprefix("kernelgym:") not in ENV_IDS:
        raise ConfigError(f"env_id: expected one of {', '.join(ENV_IDS)}, got {env_id!r}")
    mode = gym.VectorizeMode.VECTOR_ENTRY_POINT
    return cast(
        "KernelVectorEnv", gym.make_vec(env_id, num_envs, vectorization_mode=mode, **kwargs)
    )


class KernelVectorEnv(VectorEnv[dict[str, Any], Sequence[str], npt.NDArray[Any]]):
    """Several `KernelEnv`s in one process; a batch of actions is judged as a batch.

    Autoreset is of the same step: where an episode ends, the observation returned is already the
    next one's first, and `infos["final_obs"]` and `infos["final_info"]` hold the last ones. A slot
    whose judgement meets a fault of the harness is truncated, with the message in
    `infos["fault"]`, and the others go on.

    Gymnasium's `AsyncVectorEnv` with shared memory returns garbage for texts; use this instead.

    Args:
        num_envs: How many episodes run side by side, at least 1.
        judge: A judge to share; it stays open when the environments close. By default one is made
            for all of them.
        devices: What candidates are judged on, such as `[0, 1]`, when the judge is not given; see
            `kernelgym.JudgePool`. By default the configuration's device.
        workers: CPU threads for compiling and, on the emulator, for judging; see
            `kernelgym.JudgePool`.
        config: How candidates are judged, when the judge is not given.
        **kwargs: As for `KernelEnv`; fields of `JudgeConfig` are taken as there.

    Raises:
        ConfigError: An argument is not accepted.
    """

    def __init__(
        self,
        num_envs: int,
        *,
        judge: SupportsEvaluate | None = None,
        devices: Sequence[str | int] | None = None,
        workers: int | None = None,
        config: JudgeConfig | None = None,
        **kwargs: Any,
    ) -> None:
        if num_envs < 1:
            raise ConfigError(f"num_envs: expected at least 1, got {num_envs}")
        if workers is not None and workers < 1:
            raise ConfigError(f"workers: expected at least 1, got {workers}")
        if judge is not None and devices is not None:
            raise ConfigError("judge: expected no devices beside it, the judge has its own")
        self._owned: LazyJudge | None = None
        if judge is None:
            fields = {name: kwargs.pop(name) for name in _CONFIG_FIELDS & kwargs.keys()}
            config = (config or JudgeConfig()).replace(**fields)
            judge = self._owned = LazyJudge(config, devices or [config.device], workers)
            config = None
        self.envs = tuple(KernelEnv(judge=judge, config=config, **kwargs) for _ in range(num_envs))
        self.num_envs = num_envs
        self._judge = judge
        self._workers = workers
        first = self.envs[0]
        self.metadata = {**first.metadata, "autoreset_mode": AutoresetMode.SAME_STEP}
        self.render_mode = first.render_mode
        self.single_action_space = first.action_space
        self.single_observation_space = first.observation_space
        self.action_space = batch_space(first.action_space, num_envs)
        self.observation_space = batch_space(first.observation_space, num_envs)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts all episodes.

        Args:
            seed: Of the first environment (the others count up from it), or one for each.
            options: As for `KernelEnv.reset`, given to each.

        Raises:
            UsageError: The number of seeds is not the number of environments.
        """
        if seed is None or isinstance(seed, int):
            seeds: list[int | None] = [
                None if seed is None else seed + index for index in range(self.num_envs)
            ]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise UsageError(f"seed: expected {self.num_envs} seeds, got {len(seeds)}")
        infos: dict[str, Any] = {}
        observations = []
        for index, (env, one) in enumerate(zip(self.envs, seeds, strict=True)):
            seen, info = env.reset(seed=one, options=options)
            observations.append(seen)
            infos = self._add_info(infos, info, index)
        return self._batch(observations), infos

    def step(self, actions: Sequence[str]) -> VectorStepResult:
        """Takes one action in each environment.

        Raises:
            UsageError: The number of actions is not the number of environments, or one is no text.
        """
        if isinstance(actions, str) or len(actions) != self.num_envs:
            raise UsageError(f"actions: expected {self.num_envs} texts, got {_described(actions)}")
        moves = [env.plan(action) for env, action in zip(self.envs, actions, strict=True)]
        verdicts = self._judge_moves(moves)
        rewards = np.zeros(self.num_envs, np.float64)
        terminated = np.zeros(self.num_envs, np.bool_)
        truncated = np.zeros(self.num_envs, np.bool_)
        infos: dict[str, Any] = {}
        observations = []
        for index, (env, move, verdict) in enumerate(zip(self.envs, moves, verdicts, strict=True)):
            seen, reward, ended, cut, info = _finish(env, move, verdict)
            rewards[index], terminated[index], truncated[index] = reward, ended, cut
            if ended or cut:
                final = {"final_obs": seen, "final_info": info}
                if "fault" in info:
                    final["fault"] = info["fault"]
                infos = self._add_info(infos, final, index)
                seen, info = env.reset()
            observations.append(seen)
            infos = self._add_info(infos, info, index)
        return self._batch(observations), rewards, terminated, truncated, infos

    def render(self) -> tuple[Any, ...] | None:
        """What each environment renders."""
        return None if self.render_mode is None else tuple(env.render() for env in self.envs)

    def close_extras(self, **kwargs: Any) -> None:
        """Closes the environments; a judge that was given stays open."""
        for env in self.envs:
            env.close()
        if self._owned is not None:
            self._owned.close()

    def _judge_moves(self, moves: Sequence[Move]) -> list[Verdict | EnvironmentFault | None]:
        wanted = [index for index, move in enumerate(moves) if move.wants_verdict]
        jobs = [(self.envs[index].task, moves[index].workspace) for index in wanted]
        results: list[Verdict | EnvironmentFault | None] = [None] * len(moves)
        judged = evaluate_batch(self._judge, jobs, self._workers)
        for index, result in zip(wanted, judged, strict=True):
            results[index] = result
        return results

    def _batch(self, observations: Sequence[dict[str, Any]]) -> dict[str, Any]:
        space = self.single_observation_space
        empty = cast("dict[str, Any]", create_empty_array(space, self.num_envs))
        return cast("dict[str, Any]", concatenate(space, observations, empty))


def _finish(env: KernelEnv, move: Move, verdict: Verdict | EnvironmentFault | None) -> StepResult:
    if isinstance(verdict, EnvironmentFault):
        return env.abandon(verdict)
    return env.complete(move, verdict)


def _described(actions: object) -> str:
    return f"{len(actions)}" if isinstance(actions, (list, tuple)) else type(actions).__name__
