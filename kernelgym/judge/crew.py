"""Processes that work through a list of jobs; one that dies or hangs costs its job and no other.

A job is given up when a process that has done nothing else has died of it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import multiprocessing.connection
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

__all__ = ["Crew", "Lost"]

_TICK_SECONDS = 0.2
_END_SECONDS = 5.0
JobT = TypeVar("JobT")


@dataclasses.dataclass(frozen=True)
class Lost:
    """The process that had a job is gone; `why` is for a reader."""

    why: str


@dataclasses.dataclass
class _Worker(Generic[JobT]):
    process: Any
    connection: Connection
    job: JobT | None = None
    cost: float = 0.0
    began: float = 0.0
    alone: bool = True
    served: int = 0


class Crew(Generic[JobT]):
    """Some processes, each with a pipe; a context manager.

    Args:
        target: A function of a module: called in each process with its end of the pipe and
            `arguments`. It answers every job that it receives with one result, until None comes.
        arguments: What `target` is called with besides.
        size: How many processes; each is started when there is work for it.
    """

    def __init__(self, target: Callable[..., None], arguments: Sequence[Any], size: int) -> None:
        self._target = target
        self._arguments = tuple(arguments)
        self._size = size
        # A fork of a process with threads, or with a GPU opened, is none that can be used.
        self._context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker[JobT]] = []

    def __enter__(self) -> Crew[JobT]:
        return self

    def __exit__(self, *exc: object) -> None:
        self.shrink(0)

    def shrink(self, size: int) -> None:
        """Ends all processes but the first `size`, which later runs make do with."""
        self._size = size
        for worker in self._workers[size:]:
            self._end(worker, at_once=worker.job is not None)
        del self._workers[size:]

    def run(
        self,
        jobs: Sequence[JobT],
        done: Callable[[JobT, Any, bool], bool],
        *,
        cost: Callable[[JobT], float] = lambda job: 0.0,
        budget: float = 0.0,
        job_seconds: float = 600.0,
        until: float | None = None,
    ) -> int:
        """Works through jobs, in order as far as their costs allow.

        Args:
            jobs: What the processes receive.
            done: Called with a job, its result (or `Lost`), and whether it ran alone. When it
                returns True the job comes again at the end, with nothing beside it.
            cost: What a job takes of `budget`.
            budget: What the jobs that run at one time may cost together; one alone may cost more.
            job_seconds: A job that takes longer is lost.
            until: Time of the monotonic clock at which what still runs is ended.

        Returns:
            How many jobs were not finished in time.
        """
        pending = list(jobs)
        alone: list[JobT] = []
        while pending or alone or self._busy():
            if until is not None and time.monotonic() > until:
                break
            self._assign(pending, alone, cost, budget)
            for worker in self._ready():
                job, single = self._taken(worker)
                result = self._result(worker)
                if isinstance(result, Lost) and worker.served:
                    pending.insert(0, job)  # it may have died of the job before
                elif done(job, result, single):
                    alone.append(job)
                worker.served += 1
            for worker in self._busy():
                if time.monotonic() - worker.began > job_seconds:
                    job, single = self._taken(worker)
                    self._drop(worker)
                    done(job, Lost(f"not finished after {job_seconds:g} s"), single)
        left = self._busy()
        for worker in left:
            self._drop(worker)
        return len(pending) + len(alone) + len(left)

    # --- parts -------------------------------------------------------------------------------

    def _busy(self) -> list[_Worker[JobT]]:
        return [worker for worker in self._workers if worker.job is not None]

    def _assign(
        self,
        pending: list[JobT],
        alone: list[JobT],
        cost: Callable[[JobT], float],
        budget: float,
    ) -> None:
        while True:
            busy = self._busy()
            if len(busy) >= self._size:
                return
            if not pending:
                if alone and not busy:
                    self._give(alone.pop(0), float("inf"))
                return
            room = budget - sum(worker.cost for worker in busy)
            fits = (i for i, job in enumerate(pending) if not budget or cost(job) <= room)
            index = next(fits, None)
            if index is None:
                if busy:
                    return
                index = 0
            job = pending.pop(index)
            self._give(job, cost(job))

    def _give(self, job: JobT, cost: float) -> None:
        busy = self._busy()
        for other in busy:
            other.alone = False
        worker = next((w for w in self._workers if w.job is None), None) or self._start()
        try:
            worker.connection.send(job)
        except OSError:  # it died while it was idle
            self._drop(worker)
            worker = self._start()
            worker.connection.send(job)
        worker.job, worker.cost, worker.alone = job, cost, not busy
        worker.began = time.monotonic()

    def _start(self) -> _Worker[JobT]:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=self._target, args=(theirs, *self._arguments), daemon=False
        )
        process.start()
        theirs.close()
        worker: _Worker[JobT] = _Worker(process, ours)
        self._workers.append(worker)
        return worker

    def _ready(self) -> list[_Worker[JobT]]:
        by_connection = {worker.connection: worker for worker in self._busy()}
        ready = multiprocessing.connection.wait(list(by_connection), _TICK_SECONDS)
        return [by_connection[connection] for connection in ready]  # type: ignore[index]

    @staticmethod
    def _taken(worker: _Worker[JobT]) -> tuple[JobT, bool]:
        job = worker.job
        assert job is not None
        worker.job = None
        return job, worker.alone

    def _result(self, worker: _Worker[JobT]) -> Any:
        try:
            return worker.connection.recv()
        except (EOFError, OSError):
            worker.process.join(_END_SECONDS)
            self._drop(worker)
            return Lost(f"the process ended with exit code {worker.process.exitcode}")

    def _drop(self, worker: _Worker[JobT]) -> None:
        self._end(worker, at_once=True)
        self._workers.remove(worker)

    @staticmethod
    def _end(worker: _Worker[JobT], *, at_once: bool) -> None:
        if at_once:
            worker.process.kill()
        else:
            with contextlib.suppress(OSError):  # it is gone already
                worker.connection.send(None)
        worker.process.join(_END_SECONDS)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        worker.connection.close()
