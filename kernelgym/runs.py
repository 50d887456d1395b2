"""A run: one agent, many tasks, one folder that says what happened and can be continued.

::

    run.json            what was asked for, and with which versions
    trace.jsonl         every episode (`kernelgym.traces`)
    solutions/L1-019/   the files of the best correct candidate, and its verdict.json
agent               what an agent with `save` has learned so far
"""

from __future__ import annotations

import dataclasses
import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import msgspec

from kernelgym import traces
from kernelgym._version import __version__
from kernelgym.budget import Budget, Metered
from kernelgym.config import JudgeConfig
from kernelgym.env import KernelEnv
from kernelgym.errors import AgentError, EnvironmentFault, RecordError, UsageError
from kernelgym.judge.verdict import Verdict, to_json
from kernelgym.runner import Agent, EpisodeResult, run_episode
from kernelgym.wrappers import RecordTrace
from kernelgym.writing import writing

if TYPE_CHECKING:
    from kernelgym.judging import SupportsEvaluate
    from kernelgym.tasks import Task

__all__ = [
    "RUN_FILE",
    "TRACE_FILE",
    "RunPlan",
    "TaskResult",
    "folder_name",
    "play",
    "read_plan",
    "versions",
]

RUN_FILE = "run.json"
TRACE_FILE = "trace.jsonl"
AGENT_FILE = "agent"

OnTurn = Callable[[dict[str, Any]], None]
OnAction = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class RunPlan:
    """What a run does, and what it did it with.

    Attributes:
        agent: The agent's name, for the record.
        tasks: Task ids or paths, in order.
        config: How candidates are judged.
        max_turns: Turns of an episode.
        reward: Name of the reward.
        seed: Given to each episode, or None.
        versions: (name, version) pairs.
        budget: Of each episode, beside its turns.
    """

    agent: str
    tasks: tuple[str, ...]
    config: JudgeConfig
    max_turns: int = 8
    reward: str = "milestone"
    seed: int | None = None
    versions: tuple[tuple[str, str], ...] = ()
    budget: Budget = dataclasses.field(default_factory=Budget)


@dataclasses.dataclass(frozen=True)
class TaskResult:
    """What came of one task of a run.

    Attributes:
        task_id: The task.
        turns: Turns taken.
        total_reward: Sum over the turns.
        best: The best verdict, or None.
        fault: Why the harness could not judge, or `""`.
        failure: What the agent raised, and in which turn, or `""`.
        skipped: Whether an earlier call had finished it.
        seconds: Wall-clock seconds of the episode; 0 when skipped.
    """

    task_id: str
    turns: int
    total_reward: float
    best: Verdict | None
    fault: str = ""
    failure: str = ""
    skipped: bool = False
    seconds: float = 0.0

    @property
    def solved(self) -> bool:
        """Whether a candidate was correct."""
        return self.best is not None and self.best.correct


def play(
    plan: RunPlan,
    tasks: Sequence[Task],
    agent: Agent,
    out: str | os.PathLike[str],
    *,
    judge: SupportsEvaluate,
    on_start: Callable[[Task], None] = lambda task: None,
    on_action: OnAction = lambda text: None,
    on_turn: OnTurn = lambda info: None,
    on_end: Callable[[TaskResult], None] = lambda result: None,
) -> list[TaskResult]:
    """Plays an episode of each task that the folder does not hold yet.

    Args:
        plan: What is asked for; its `tasks` name `tasks`.
        tasks: The tasks, loaded.
        agent: Plays all of them. One with `save(path)` and `load(path)` is saved after each task, and
            loaded when the run goes on.
        out: The run's folder.
        judge: Stays open.
        on_start: Called before an episode.
        on_action: Called with the agent's text before it is applied and judged.
        on_turn: Called after each turn with the environment's info and besides `reward`, `action`,
            `changed` (whether the files are others now) and `judged` (whether the verdict is new).
        on_end: Called after an episode, also for one that is skipped.

    Returns:
        One result a task, in order. A fault of the harness, or an agent that raises, ends that
        task's episode only, which the next call plays again.

    Raises:
        UsageError: The folder holds a run of another plan, or something else, or cannot be written.
    """
    root = Path(out)
    with writing(out):
        _continue(root, plan)
    done = _finished(root, plan.reward)
    saved = root / AGENT_FILE
    if done and saved.exists() and hasattr(agent, "load"):
        agent.load(saved)
    results: list[TaskResult] = []
    env = KernelEnv(list(tasks), max_turns=plan.max_turns, reward=plan.reward, judge=judge)
    metered = Metered(env, plan.budget, agent)
    recorded = RecordTrace(_Told(metered, on_action, on_turn), root / TRACE_FILE)
    try:
        for task in tasks:
            if task.id in done:
                result = done[task.id]
            else:
                on_start(task)
                result = _play_one(recorded, task, agent, plan.seed, root)
                if hasattr(agent, "save"):
                    agent.save(saved)
            on_end(result)
            results.append(result)
    finally:
        recorded.close()
    return results


def read_plan(out: str | os.PathLike[str]) -> RunPlan | None:
    """The plan that a folder was made with; None when it holds none.

    Raises:
        RecordError: `run.json` is not a plan.
    """
    path = Path(out) / RUN_FILE
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunPlan)
    except msgspec.DecodeError as error:
        raise RecordError(f"{path}: expected a run's plan, got: {error}") from error


def folder_name(task: Task) -> str:
    """The name of a task's folder, such as `"L1-019"`; sorts by number."""
    return f"L{task.level}-{task.number:03d}" if task.level else task.id


def versions() -> tuple[tuple[str, str], ...]:
    """What a run depends on, as (name, version) pairs."""
    import torch

    return (
        ("kernelgym", __version__),
        ("python", platform.python_version()),
        ("torch", str(torch.__version__)),
        ("gymnasium", gym.__version__),
        ("machine", platform.platform()),
    )


class _Told(gym.Wrapper[Any, str, Any, str]):
    """Tells callbacks of each turn."""

    def __init__(self, env: gym.Env[Any, str], on_action: OnAction, on_turn: OnTurn) -> None:
        super().__init__(env)
        self._on_action = on_action
        self._on_turn = on_turn
        self._before: dict[str, Any] = {}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observation, self._before = self.env.reset(seed=seed, options=options)
        return observation, self._before

    def step(self, action: str) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self._on_action(action)
        observation, reward, terminated, truncated, info = self.env.step(action)
        news = {
            "reward": float(reward),
            "action": action,
            "changed": info["workspace"] != self._before["workspace"],
            "judged": info["verdict"] is not self._before["verdict"],
        }
        self._before = info
        self._on_turn({**info, **news})
        return observation, reward, terminated, truncated, info


def _play_one(
    env: gym.Env[Any, str], task: Task, agent: Agent, seed: int | None, root: Path
) -> TaskResult:
    start = time.perf_counter()
    try:
        episode = run_episode(env, agent, seed=seed, options={"task": task})
    except EnvironmentFault as fault:
        taken = time.perf_counter() - start
        return TaskResult(task.id, 0, 0.0, None, fault=str(fault), seconds=taken)
    except AgentError as failure:
        taken = time.perf_counter() - start
        return TaskResult(task.id, 0, 0.0, None, failure=str(failure), seconds=taken)
    _keep_solution(root / "solutions" / folder_name(task), episode)
    return TaskResult(
        task.id,
        len(episode.turns),
        episode.total_reward,
        episode.best_verdict,
        seconds=time.perf_counter() - start,
    )


def _keep_solution(folder: Path, episode: EpisodeResult) -> None:
    if not episode.solved or episode.best_verdict is None:
        return
    best = next(turn for turn in episode.turns if turn.verdict is episode.best_verdict)
    for name, text in best.workspace.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "verdict.json").write_text(to_json(episode.best_verdict) + "\n", encoding="utf-8")


def _continue(root: Path, plan: RunPlan) -> None:
    """Writes the plan, or checks that the folder's is the same but for tasks and versions."""
    known = read_plan(root)
    if known is not None:
        for field in ("agent", "config", "budget", "max_turns", "reward", "seed"):
            before, now = getattr(known, field), getattr(plan, field)
            if before != now:
                raise UsageError(f"{root} holds another run: expected {field} {before}, got {now}")
        more = tuple(task for task in plan.tasks if task not in known.tasks)
        plan = dataclasses.replace(known, tasks=known.tasks + more)
    elif root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise UsageError(f"--out: expected a new folder or that of a run, got {root}")
    root.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(plan), indent=1)
    fresh = root / f"{RUN_FILE}.new"
    fresh.write_bytes(text + b"\n")
    fresh.replace(root / RUN_FILE)


def _finished(root: Path, reward: str) -> dict[str, TaskResult]:
    from kernelgym import rewards

    path = root / TRACE_FILE
    results: dict[str, TaskResult] = {}
    for episode in traces.read(path) if path.exists() else ():
        if episode.finished:
            best: Verdict | None = None
            for step in episode.steps:
                if step.verdict is not None:
                    best = rewards.better(rewards.get(reward), step.verdict, best)
            total = sum(step.reward for step in episode.steps)
            turns = len(episode.steps)
            results[episode.start.task] = TaskResult(
                episode.start.task, turns, total, best, skipped=True
            )
    return results
