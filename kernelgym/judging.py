"""How environments reach a judge: what they ask of it, one made late, and batches."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, TypeAlias

from kernelgym.config import JudgeConfig
from kernelgym.errors import EnvironmentFault
from kernelgym.judge.verdict import Verdict
from kernelgym.workspace import Workspace

if TYPE_CHECKING:
    from kernelgym.judge.judge import Judge
    from kernelgym.tasks import Task

__all__ = ["Job", "LazyJudge", "SupportsEvaluate", "evaluate_batch"]

Job: TypeAlias = "tuple[Task, Workspace]"


class SupportsEvaluate(Protocol):
    """What an environment asks of a judge; `kernelgym.Judge` is one."""

    @property
    def config(self) -> JudgeConfig:
        """How it judges."""

    @property
    def size(self) -> str:
        """Which shapes it judges at: `"small"`, `"medium"` or `"full"`."""

    def evaluate(self, task: Task, workspace: Workspace) -> Verdict:
        """Judges one workspace; raises EnvironmentFault when the harness is at fault."""

    def close(self) -> None:
        """Frees what it holds; may be called again."""


class LazyJudge:
    """A `kernelgym.Judge` that is made when it is first needed, for it imports torch.

    Args:
        config: How to judge.
    """

    def __init__(self, config: JudgeConfig) -> None:
        self.config = config
        self._judge: Judge | None = None
        self._lock = threading.Lock()

    @property
    def size(self) -> str:
        """Which shapes are judged; makes the judge only where that depends on the machine."""
        if self.config.size != "auto":
            return self.config.size
        if self.config.device == "auto":
            return self._made().size
        return "small" if self.config.device == "cpu" else "full"

    def evaluate(self, task: Task, workspace: Workspace) -> Verdict:
        """See `kernelgym.Judge.evaluate`."""
        return self._made().evaluate(task, workspace)

    def close(self) -> None:
        """Closes the judge if there is one; the next use makes another."""
        with self._lock:
            if self._judge is not None:
                self._judge.close()
                self._judge = None

    def _made(self) -> Judge:
        with self._lock:
            if self._judge is None:
                from kernelgym.judge.judge import Judge

                self._judge = Judge(self.config)
            return self._judge


def evaluate_batch(
    judge: SupportsEvaluate, jobs: Sequence[Job], workers: int | None = None
) -> list[Verdict | EnvironmentFault]:
    """Judges a batch: the verdict of each job in order, or the fault that prevented it.

    Args:
        judge: Safe to use from several threads, unless `workers` is 1.
        jobs: Tasks and workspaces.
        workers: Judgements at a time; by default as many as there are CPU cores.
    """

    def one(job: Job) -> Verdict | EnvironmentFault:
        try:
            return judge.evaluate(*job)
        except EnvironmentFault as fault:
            return fault

    if len(jobs) < 2 or workers == 1:
        return [one(job) for job in jobs]
    with ThreadPoolExecutor(min(len(jobs), workers or os.cpu_count() or 1)) as pool:
        return list(pool.map(one, jobs))
