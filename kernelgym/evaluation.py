"""`evaluate_agent`: what an agent is worth, under the same budget for whoever is evaluated.

Everything that is reported is computed from the folder of a run (`kernelgym.runs`), so an evaluation
that was killed goes on where it stopped, and one that is over can be scored again.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelgym import rewards, runs, traces
from kernelgym.budget import Budget, Usage
from kernelgym.config import JudgeConfig
from kernelgym.errors import UsageError
from kernelgym.judge.sources import find_task
from kernelgym.judge.verdict import Outcome, Verdict
from kernelgym.judging import LazyJudge
from kernelgym.resampling import Estimate, Resamples
from kernelgym.scores import SetScores, by_level, clean_tasks, task_score

if TYPE_CHECKING:
    from kernelgym.judging import SupportsEvaluate
    from kernelgym.runner import Agent
    from kernelgym.tasks import Task

__all__ = ["Evaluation", "TaskEvaluation", "evaluate_agent", "read_evaluation"]


@dataclasses.dataclass(frozen=True)
class TaskEvaluation:
    """What came of one task.

    Attributes:
        task: Task id.
        best: The best verdict of the trajectory, by the run's reward; None: there is none.
        last: The last one.
        turns: Turns taken.
        verdicts: Verdicts had, including those that the agent had from a judge by itself.
        builds: Verdicts of its turns for which a compiler ran.
        first_correct: Which verdict of its turns was the first correct one, from 1; None: none was.
        usage: What the agent used.
    """

    task: str
    best: Verdict | None = None
    last: Verdict | None = None
    turns: int = 0
    verdicts: int = 0
    builds: int = 0
    first_correct: int | None = None
    usage: Usage = dataclasses.field(default_factory=Usage)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What an agent came to.

    A task that is not finished yet, or whose episode failed, counts as one without a verdict.

    Attributes:
        agent: Its name.
        budget: Of each task.
        config: How candidates were judged.
        tasks: One for each task asked for, in order.
        finished: How many of them are.
        best: Scores of each task's best verdict, by set: `"all"`, `"L1"`, `"L2"`, `"L3"`.
        last: Scores of each task's last verdict.
        clean: As `best`, over the tasks on which no trivial answer passes; empty without any.
        first_correct: Mean number of the first correct verdict, over tasks that have one.
        solved_within: (n, share of all tasks that have a correct verdict among their first n).
        usage: What the agent used altogether.
    """

    agent: str
    budget: Budget
    config: JudgeConfig
    tasks: tuple[TaskEvaluation, ...]
    finished: int
    best: Mapping[str, SetScores]
    last: Mapping[str, SetScores]
    clean: Mapping[str, SetScores]
    first_correct: Estimate | None
    solved_within: tuple[tuple[int, float], ...]
    usage: Usage

    @property
    def verdicts(self) -> int:
        """Verdicts had altogether."""
        return sum(task.verdicts for task in self.tasks)

    @property
    def builds(self) -> int:
        """Verdicts for which a compiler ran, altogether."""
        return sum(task.builds for task in self.tasks)


def evaluate_agent(
    agent: Agent,
    tasks: Sequence[Task | str],
    budget: Budget | int,
    *,
    out: str | os.PathLike[str],
    name: str = "",
    config: JudgeConfig | None = None,
    judge: SupportsEvaluate | None = None,
    reward: str = "milestone",
    seed: int | None = None,
    **callbacks: Any,
) -> Evaluation:
    """Lets an agent play each task once, and scores it.

    Args:
        agent: Plays all of them. One with `save` and `load` is saved after each task, and loaded
            when the evaluation goes on.
        tasks: Tasks, their ids, or levels (`"L1"`).
        budget: Of each task; a number is one of verdicts.
        out: The run's folder; what it holds finished is not played again.
        name: The agent's, for the record; by default its class's.
        config: How to judge. Excludes `judge`.
        judge: A judge to share; stays open.
        reward: Which reward the agent is paid, and by which the best verdict is picked.
        seed: Given to each episode.
        **callbacks: As for `kernelgym.runs.play`.

    Raises:
        UsageError: The folder holds another run, or cannot be written.
        UnknownTaskError: No task of that id.
    """
    if judge is not None and config is not None:
        raise UsageError("judge: expected no config beside it, the judge has its own")
    limits = Budget(verdicts=budget) if isinstance(budget, int) else budget
    loaded = _load(tasks)
    owned = LazyJudge(config or JudgeConfig()) if judge is None else None
    judging = judge if judge is not None else owned
    assert judging is not None
    plan = runs.RunPlan(
        name or getattr(agent, "__name__", type(agent).__name__),
        tuple(task.id if task.level else str(Path(task.path).resolve()) for task in loaded),
        judging.config,
        limits.turns or runs.RunPlan.max_turns,
        reward,
        seed,
        runs.versions(),
        limits,
    )
    try:
        runs.play(plan, loaded, agent, out, judge=judging, **callbacks)
    finally:
        if owned is not None:
            owned.close()
    return read_evaluation(out)


def read_evaluation(folder: str | os.PathLike[str]) -> Evaluation:
    """Scores the run that a folder holds.

    Raises:
        UsageError: There is none.
        RecordError: It cannot be read.
    """
    plan = runs.read_plan(folder)
    if plan is None:
        raise UsageError(f"expected the folder of a run, got {os.fspath(folder)}")
    path = Path(folder) / runs.TRACE_FILE
    episodes = traces.read(path) if path.exists() else ()
    found = {e.start.task: _task(e, plan.reward) for e in episodes if e.finished}
    ids = [Path(task).stem if task.endswith(".py") else task for task in plan.tasks]
    tasks = tuple(found.get(task, TaskEvaluation(task)) for task in ids)
    if not tasks:
        raise UsageError(f"{os.fspath(folder)}: expected a run of at least one task")
    firsts = [task.first_correct for task in tasks]
    most = max([plan.budget.verdicts or 0, *(first or 0 for first in firsts)])
    clean = frozenset(clean_tasks(ids, plan.config.protocol))
    best = [task_score(task.task, task.best) for task in tasks]
    return Evaluation(
        agent=plan.agent,
        budget=plan.budget,
        config=plan.config,
        tasks=tasks,
        finished=sum(task in found for task in ids),
        best=by_level(best),
        last=by_level([task_score(task.task, task.last) for task in tasks]),
        clean=by_level([score for score in best if score.task in clean]),
        first_correct=Resamples(len(tasks)).mean(firsts),
        solved_within=tuple(
            (n, sum(first is not None and first <= n for first in firsts) / len(tasks))
            for n in range(1, most + 1)
        ),
        # An episode that was cut off was paid for too.
        usage=sum((_usage(episode) for episode in episodes), Usage()),
    )


def _task(episode: traces.Episode, reward: str) -> TaskEvaluation:
    verdicts = [step.verdict for step in episode.steps if step.verdict is not None]
    best: Verdict | None = None
    for verdict in verdicts:
        best = rewards.better(rewards.get(reward), verdict, best)
    usage = _usage(episode)
    return TaskEvaluation(
        task=episode.start.task,
        best=best,
        last=verdicts[-1] if verdicts else None,
        turns=len(episode.steps),
        verdicts=len(verdicts) + usage.verdicts,
        builds=sum(map(_built, verdicts)),
        first_correct=next((n for n, v in enumerate(verdicts, 1) if v.correct), None),
        usage=usage,
    )


def _usage(episode: traces.Episode) -> Usage:
    return sum((step.usage for step in episode.steps if step.usage is not None), Usage())


def _built(verdict: Verdict) -> bool:
    if verdict.outcome is Outcome.COMPILE_ERROR:
        return True
    build = verdict.build
    return build is not None and build.path != "none" and not build.cached


def _load(tasks: Sequence[Task | str]) -> list[Task]:
    from kernelgym.tasks import ids

    loaded: dict[str, Task] = {}
    for task in tasks:
        level = isinstance(task, str) and task[:1] == "L" and task[1:].isdigit()
        for one in ids(int(task[1:])) if level and isinstance(task, str) else [task]:
            found = find_task(one)
            loaded[found.id] = found
    if not loaded:
        raise UsageError("tasks: expected at least one, got none")
    return list(loaded.values())
