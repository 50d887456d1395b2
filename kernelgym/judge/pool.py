"""Many judgements at once: results in order, and one bad job hurts nobody."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import pathlib
from collections.abc import Callable, Iterable
from typing import Any

from kernelgym.config import JudgeConfig
from kernelgym.errors import EnvironmentFault, KernelGymError, RecordError
from kernelgym.judge.judge import Judge
from kernelgym.judge.sources import find_task, source_hash, workspace_files
from kernelgym.judge.verdict import Verdict, from_json, to_json
from kernelgym.tasks import Task

__all__ = ["Job", "evaluate_many"]


@dataclasses.dataclass(frozen=True)
class Job:
    """One candidate to judge; see `Judge.evaluate` for what its fields may be."""

    task: Task | str
    workspace: Any


def evaluate_many(
    jobs: Iterable[Job | tuple[Task | str, Any]],
    config: JudgeConfig | None = None,
    *,
    judge: Judge | None = None,
    workers: int | None = None,
    resume: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Verdict | EnvironmentFault]:
    """Judges many candidates side by side.

    Args:
        jobs: What to judge.
        config: How; ignored when `judge` is given.
        judge: A judge to use; otherwise one is made and closed.
        workers: Judgements at a time; by default as many as there are CPU cores.
        resume: A JSONL file: every verdict is appended to it, and verdicts found in it for the same
            task, sources and rules are not reached again.
        progress: Called after each job with (done, total), from the calling thread.

    Returns:
        For each job, in order: its verdict, or the fault that prevented one.

    Raises:
        UsageError: A job is no job: its task is unknown or its workspace no workspace. Nothing has
            been judged then.
    """
    todo = [job if isinstance(job, Job) else Job(*job) for job in jobs]
    prepared = [(find_task(job.task), workspace_files(job.workspace)) for job in todo]
    own = judge is None
    judge = judge or Judge(config)
    store = _Store(pathlib.Path(resume)) if resume is not None else None
    results: list[Verdict | EnvironmentFault | None] = [None] * len(todo)
    try:
        with concurrent.futures.ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
            futures = {}
            for index, (task, files) in enumerate(prepared):
                known = store.find(task.id, source_hash(files), judge) if store else None
                if known is not None:
                    results[index] = known
                else:
                    texts = {file.path: file.text for file in files}
                    futures[pool.submit(judge.evaluate, task, texts)] = index
            done = len(todo) - len(futures)
            for future in concurrent.futures.as_completed(futures):
                try:
                    verdict = future.result()
                    results[futures[future]] = verdict
                    if store is not None:
                        store.append(verdict)
                except EnvironmentFault as fault:
                    results[futures[future]] = fault
                except KernelGymError as error:  # whatever it is, it is this job's alone
                    results[futures[future]] = EnvironmentFault(str(error))
                done += 1
                if progress is not None:
                    progress(done, len(todo))
    finally:
        if own:
            judge.close()
    return [result for result in results if result is not None]


class _Store:
    """Verdicts in a JSONL file. A last line that was cut off by a kill is dropped."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._known: dict[tuple[str, ...], Verdict] = {}
        lines = path.read_text().splitlines() if path.exists() else []
        for number, line in enumerate(lines, 1):
            try:
                verdict = from_json(line)
            except RecordError as error:
                if number == len(lines):
                    path.write_text("".join(f"{kept}\n" for kept in lines[:-1]))
                    break
                raise RecordError(f"{path}:{number}: {error}") from error
            self._known[_key(verdict)] = verdict

    def find(self, task: str, sources: str, judge: Judge) -> Verdict | None:
        config = judge.config
        rules = (config.protocol, config.ruleset, config.precision, judge.size)
        return self._known.get((task, sources, *rules))

    def append(self, verdict: Verdict) -> None:
        with self._path.open("a") as file:
            file.write(to_json(verdict) + "\n")


def _key(verdict: Verdict) -> tuple[str, ...]:
    made = verdict.provenance
    return (
        verdict.task,
        verdict.source_hash,
        made.protocol,
        made.ruleset,
        made.precision,
        made.size,
    )
