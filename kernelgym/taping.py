"""Recording tapes: from a run's traces, which hold their verdicts, or by judging candidates."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernelgym import runs, traces
from kernelgym.errors import RecordError, UsageError
from kernelgym.judge.sources import find_task, workspace_files
from kernelgym.judge.verdict_log import VerdictLog, question
from kernelgym.tasks import Task
from kernelgym.workspace import Workspace

__all__ = ["read_candidates", "record_run"]


def record_run(folder: str | os.PathLike[str], tape: str | os.PathLike[str]) -> int:
    """Copies the verdicts of a run onto a tape; what the tape holds already is left out.

    Nothing is judged: each episode's edits are applied again, to have the sources.

    Args:
        folder: A folder of `kernelgym run`.
        tape: The tape; made where it does not exist.

    Returns:
        How many verdicts were added.

    Raises:
        RecordError: The folder holds no run, its tasks have changed since, or its verdicts come
            from a tape themselves; or the tape is something else.
    """
    plan = runs.read_plan(folder)
    path = Path(folder) / runs.TRACE_FILE
    if plan is None or not path.exists():
        raise RecordError(f"{folder}: expected the folder of a run, got none")
    log = VerdictLog(tape)
    known: dict[str, Task] = {}
    for name in plan.tasks:
        task = find_task(name)
        known[task.id] = task
    added = 0
    for episode in traces.read(path):
        if episode.start.task not in known:
            raise RecordError(
                f"{path}: expected tasks of {runs.RUN_FILE}, got {episode.start.task}"
            )
        task = known[episode.start.task]
        judged = [step for step in episode.steps if step.verdict is not None]
        if not judged:
            continue
        size = judged[0].verdict.provenance.size if judged[0].verdict is not None else ""
        after = traces.replay(episode, Workspace.initial(task, size))[1:]
        for step, workspace in zip(episode.steps, after, strict=True):
            verdict = step.verdict
            if verdict is None:
                continue
            if verdict.timing is not None and verdict.timing.candidate.source == "replayed":
                raise RecordError(f"{path}: expected live verdicts, got one from a tape")
            made = verdict.provenance
            files = workspace_files(workspace)
            asked = question(task, files, episode.start.config, made.size, made.device)
            # Where it was reached counts, not where it is copied.
            asked |= {"kernelgym": made.kernelgym, "torch": made.torch}
            if log.find(asked) is None:
                log.append(asked, verdict)
                added += 1
    return added


def read_candidates(
    path: str | os.PathLike[str], find: Callable[[str], Task] = find_task
) -> list[tuple[Task, dict[str, str]]]:
    """Reads candidates to judge: JSON lines of `{"task": …, "files": {…}}`.

    Args:
        path: The file. `"source"` may stand in place of `"files"`: the text of `model_new.py`.
        find: Finds a task by what a line calls it.

    Raises:
        RecordError: A line is something else; the message names it.
        UsageError: A task is unknown, or a file's path leaves the workspace.
    """
    jobs: list[tuple[Task, dict[str, str]]] = []
    for number, line in enumerate(Path(path).read_bytes().splitlines(), 1):
        try:
            candidate = _Candidate(**json.loads(line))
        except (ValueError, TypeError) as error:
            raise RecordError(f"{path}:{number}: expected a candidate, got: {error}") from error
        if (candidate.files is None) == (candidate.source is None):
            raise RecordError(f"{path}:{number}: expected either files or source")
        files: Any = candidate.source if candidate.files is None else candidate.files
        try:
            prepared = workspace_files(files)
        except UsageError as error:
            raise RecordError(f"{path}:{number}: {error}") from error
        jobs.append((find(candidate.task), {file.path: file.text for file in prepared}))
    return jobs


@dataclasses.dataclass(frozen=True)
class _Candidate:
    task: str
    files: dict[str, str] | None = None
    source: str | None = None
