"""What a report shows, collected from a run's folder; texts are as they were, not yet escaped."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernelgym import rewards, traces
from kernelgym.errors import KernelGymError, UsageError
from kernelgym.judge.reasons import REASONS
from kernelgym.judge.verdict import Diagnostic, Outcome, Verdict
from kernelgym.runs import TRACE_FILE, RunPlan, read_plan
from kernelgym.workspace import Workspace

if TYPE_CHECKING:
    from kernelgym.tasks import Task
    from kernelgym.tasks.facts import Facts

__all__ = ["DiffLine", "EpisodeView", "RunView", "TurnView", "collect"]

_MAX_DIFF_LINES = 600
_CONTEXT_KINDS = {"+": "added", "-": "removed", "@": "hunk"}


@dataclasses.dataclass(frozen=True)
class DiffLine:
    """One line of a unified diff; `kind` is `added`, `removed`, `hunk`, `file` or `same`."""

    kind: str
    text: str


@dataclasses.dataclass(frozen=True)
class TurnView:
    """One turn.

    Attributes:
        number: 1 for the first.
        reward: What it paid.
        edit_error: Why the edit did not apply, or `""`.
        verdict: The verdict on this turn's files, or None.
        diff: What the edit changed; empty where it is not known.
        action: The agent's text.
        remedy: What the verdict's reason asks for, or `""`.
        problems: The verdict's diagnostics and compiler warnings.
        best: Best speedup against eager of a correct candidate up to here, or None.
        is_best: Whether this turn's verdict is the episode's best.
    """

    number: int
    reward: float
    edit_error: str
    verdict: Verdict | None
    diff: tuple[DiffLine, ...]
    action: str
    remedy: str
    problems: tuple[Diagnostic, ...]
    best: float | None
    is_best: bool


@dataclasses.dataclass(frozen=True)
class EpisodeView:
    """One episode.

    Attributes:
        number: From 0, in the order of the trace.
        task_id: The task.
        name: Its name, or its id where the task cannot be found.
        turns: What happened.
        best: The best verdict, or None.
        total_reward: Sum over the turns.
        finished: Whether it was played to its end.
        facts: What the judge knows of the task at the size judged, or None where it is not found.
        note: Why something cannot be shown, or `""`.
    """

    number: int
    task_id: str
    name: str
    turns: tuple[TurnView, ...]
    best: Verdict | None
    total_reward: float
    finished: bool
    facts: Facts | None
    note: str


@dataclasses.dataclass(frozen=True)
class RunView:
    """A run: its plan (None for a bare trace) and its episodes."""

    title: str
    plan: RunPlan | None
    episodes: tuple[EpisodeView, ...]

    @property
    def solved(self) -> int:
        """Episodes with a correct candidate."""
        return sum(one.best is not None and one.best.correct for one in self.episodes)


def collect(folder: Path) -> RunView:
    """Reads a run's folder.

    Raises:
        UsageError: There is no trace in it, or it cannot be read.
    """
    path = folder / TRACE_FILE
    if not path.is_file():
        raise UsageError(f"DIR: expected a folder with {TRACE_FILE}, got {folder}")
    plan = read_plan(folder)
    named = _named_tasks(plan)
    episodes = [
        _episode(number, episode, named) for number, episode in enumerate(traces.read(path))
    ]
    return RunView(folder.resolve().name, plan, tuple(episodes))


def _named_tasks(plan: RunPlan | None) -> dict[str, str]:
    """Paths of the tasks that are not in the catalogue, by id."""
    names = plan.tasks if plan is not None else ()
    return {Path(name).stem: name for name in names if name.endswith(".py")}


def _find_task(task_id: str, named: dict[str, str]) -> Task:
    from kernelgym import tasks

    return tasks.load_file(named[task_id]) if task_id in named else tasks.get(task_id)


def _episode(number: int, episode: traces.Episode, named: dict[str, str]) -> EpisodeView:
    size = _size(episode)
    notes: list[str] = []
    workspaces: Sequence[Workspace] = ()
    facts = None
    name = episode.start.task
    # The task may have changed or moved since; the verdicts stand on their own.
    try:
        task = _find_task(episode.start.task, named)
        name = task.name
        facts = task.facts(size)
        workspaces = traces.replay(episode, Workspace.initial(task, size))
    except KernelGymError as error:
        notes.append(
            f"Edits are shown as they were sent, because the task is not as it was: {error}"
        )
    best = _best(episode)
    turns = []
    speed: float | None = None
    for index, step in enumerate(episode.steps):
        if step.verdict is not None and step.verdict.correct:
            now = _speedup(step.verdict)
            speed = now if speed is None or (now is not None and now > speed) else speed
        diff: tuple[DiffLine, ...] = ()
        if workspaces:
            diff = _diff(workspaces[index], workspaces[index + 1])
        turns.append(_turn(step, diff, speed, step.verdict is not None and step.verdict is best))
    return EpisodeView(
        number=number,
        task_id=episode.start.task,
        name=name,
        turns=tuple(turns),
        best=best,
        total_reward=sum(step.reward for step in episode.steps),
        finished=episode.finished,
        facts=facts,
        note=" ".join(notes),
    )


def _turn(
    step: traces.StepRecord, diff: tuple[DiffLine, ...], best: float | None, is_best: bool
) -> TurnView:
    verdict = step.verdict
    problems: tuple[Diagnostic, ...] = ()
    remedy = ""
    if verdict is not None:
        warnings = verdict.build.warnings if verdict.build is not None else ()
        problems = (*verdict.diagnostics, *warnings)
        reason = REASONS.get(verdict.reason)
        remedy = reason.remedy if reason is not None else ""
    return TurnView(
        number=step.turn,
        reward=step.reward,
        edit_error=step.edit_error,
        verdict=verdict,
        diff=diff,
        action=step.action,
        remedy=remedy,
        problems=problems,
        best=best,
        is_best=is_best,
    )


def _size(episode: traces.Episode) -> str:
    for step in episode.steps:
        if step.verdict is not None:
            return step.verdict.provenance.size
    size = episode.start.config.size
    return size if size != "auto" else "small"


def _best(episode: traces.Episode) -> Verdict | None:
    reward = rewards.get(episode.start.reward)
    best: Verdict | None = None
    for step in episode.steps:
        if step.verdict is not None:
            best = rewards.better(reward, step.verdict, best)
    return best


def _speedup(verdict: Verdict) -> float | None:
    if verdict.outcome is not Outcome.CORRECT or verdict.timing is None:
        return None
    speedup = verdict.timing.speedup_eager
    return speedup.value if speedup is not None else None


def _diff(before: Workspace, after: Workspace) -> tuple[DiffLine, ...]:
    lines = before.diff(after).splitlines()
    shown = [
        DiffLine("file" if line.startswith(("--- ", "+++ ")) else _kind(line), line)
        for line in lines[:_MAX_DIFF_LINES]
    ]
    if len(lines) > _MAX_DIFF_LINES:
        shown.append(DiffLine("hunk", f"… {len(lines) - _MAX_DIFF_LINES} more lines"))
    return tuple(shown)


def _kind(line: str) -> str:
    return _CONTEXT_KINDS.get(line[:1], "same")
