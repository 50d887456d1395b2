"""How environments reach a judge: what they ask of it, one made late, and batches."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from kernelgym.config import JudgeConfig
from kernelgym.errors import EnvironmentFault
from kernelgym.judge.verdict import Verdict
from kernelgym.workspace import Workspace

if TYPE_CHECKING:
    from kernelgym.judge.judge import Judge
    from kernelgym.judge.pool import JudgePool
    from kernelgym.tasks import Task

__all__ = ["Job", "LazyJudge", "SupportsBatches", "SupportsEvaluate", "evaluate_batch"]

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


@runtime_checkable
class SupportsBatches(Protocol):
    """A judge that knows best how to judge a batch: a pool, a client, a `Judge`."""

    def evaluate_many(
        self, jobs: Sequence[Job], *, workers: int | None = None
    ) -> list[Verdict | EnvironmentFault]:
        """The verdict of each job in order, or the fault that prevented it."""


class LazyJudge:
    """A `kernelgym.Judge` or `JudgePool` that is made when first needed, for it imports torch.

    Args:
        config: How to judge.
        devices: Makes a pool on these devices, see `kernelgym.JudgePool`; None makes a judge.
        workers: The pool's.
    """

    def __init__(
        self,
        config: JudgeConfig,
        devices: Sequence[str | int] | None = None,
        workers: int | None = None,
    ) -> None:
        self.config = config
        self._devices = devices
        self._workers = workers
        self._judge: Judge | JudgePool | None = None
        self._lock = threading.Lock()

    @property
    def size(self) -> str:
        """Which shapes are judged; makes the judge only where that depends on the machine."""
        if self.config.size != "auto":
            return self.config.size
        device = self._devices[0] if self._devices else self.config.device
        if device == "auto":
            return self._made().size
        return "small" if device == "cpu" else "full"

    def evaluate(self, task: Task, workspace: Workspace) -> Verdict:
        """See `kernelgym.Judge.evaluate`."""
        return self._made().evaluate(task, workspace)

    def evaluate_many(
        self, jobs: Sequence[Job], *, workers: int | None = None
    ) -> list[Verdict | EnvironmentFault]:
        """See `kernelgym.evaluate_many`."""
        return self._made().evaluate_many(jobs, workers=workers)

    def close(self) -> None:
        """Closes the judge if there is one; the next use makes another."""
        with self._lock:
            if self._judge is not None:
                self._judge.close()
                self._judge = None

    def _made(self) -> Judge | JudgePool:
        with self._lock:
            if self._judge is None:
                from kernelgym.judge.judge import Judge
                from kernelgym.judge.pool import JudgePool

                if self._devices is None:
                    self._judge = Judge(self.config)
                else:
                    self._judge = JudgePool(
                        self.config, devices=self._devices, workers=self._workers
                    )
            return self._judge


def evaluate_batch(
    judge: SupportsEvaluate, jobs: Sequence[Job], workers: int | None = None
) -> list[Verdict | EnvironmentFault]:
    """Judges a batch: the verdict of each job in order, or the fault that prevented it.

    Args:
        judge: One that judges batches, or one that is safe to use from several threads.
        jobs: Tasks and workspaces.
        workers: Judgements at a time; by default as many as there are CPU cores.
    """

    def one(job: Job) -> Verdict | EnvironmentFault:
        try:
            return judge.evaluate(*job)
        except EnvironmentFault as fault:
            return fault

    if len(jobs) > 1 and isinstance(judge, SupportsBatches):
        return judge.evaluate_many(jobs, workers=workers)
    if len(jobs) < 2 or workers == 1:
        return [one(job) for job in jobs]
    with ThreadPoolExecutor(min(len(jobs), workers or os.cpu_count() or 1)) as pool:
        return list(pool.map(one, jobs))
