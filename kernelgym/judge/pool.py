"""Many judgements at once, on one device or several: `JudgePool`, `evaluate_many`, `aevaluate`.

A GPU times one candidate at a time, and nothing else may run on it meanwhile; compilers need no
GPU. So a job goes through two stages. Threads of the CPU's have candidates compiled ahead
(`Judge.prepare`), as many at a time as there are cores to spare; what is compiled waits in one queue,
from which each device takes the next as soon as it is free. On the emulator there is nothing to
wait for, and jobs go to the second stage at once.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import dataclasses
import functools
import os
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, TypeAlias

from kernelgym.config import JudgeConfig
from kernelgym.errors import ConfigError, EnvironmentFault, KernelGymError, SandboxFault
from kernelgym.judge.device import resolve_device
from kernelgym.judge.judge import Judge, evaluate
from kernelgym.judge.sources import find_task, workspace_files
from kernelgym.judge.verdict import Verdict
from kernelgym.judge.verdict_log import VerdictLog, question
from kernelgym.tasks import Task
from kernelgym.toolchain.build import SourceFile
from kernelgym.toolchain.service import BuildService

__all__ = ["Job", "JudgePool", "aevaluate", "evaluate_many"]

# Cores that each GPU's grader and candidate are left, so that compilers do not disturb times.
_CORES_FOR_TIMING = 2

JobLike: TypeAlias = "Job | tuple[Task | str, Any]"
Progress: TypeAlias = Callable[[int, int], None]


@dataclasses.dataclass(frozen=True)
class Job:
    """One candidate to judge; see `Judge.evaluate` for what its fields may be."""

    task: Task | str
    workspace: Any


@dataclasses.dataclass(frozen=True)
class _Item:
    """A job on its way."""

    task: Task
    files: dict[str, str]
    config: JudgeConfig | None
    future: Future[Verdict]


class JudgePool:
    """Judges that share one queue of jobs; a context manager, safe to use from several threads.

    It can stand wherever a `Judge` is asked for.

    Args:
        config: How to judge; `devices` take the place of its `device`.
        devices: What to judge on: numbers of GPUs, or names as in `JudgeConfig.device`. `"cpu"` may
            come several times: each is an emulator with processes of its own. By default the
            configuration's device.
        judges: Judges to use in place of making some; they stay open when the pool closes.
        workers: CPU threads: candidates that are compiled ahead at a time and, on the emulator,
            judged at a time. By default the cores that this process may use, less two for each
            GPU.
        per_device: Judgements at a time on each device; by default 1 on a GPU, and the workers'
            share on an emulator. Two on a GPU wait for each other's turn there, and both their
            references need to fit into its memory.

    Raises:
        ConfigError: A device is not there, is given twice, or a number is less than 1.
    """

    def __init__(
        self,
        config: JudgeConfig | None = None,
        *,
        devices: Sequence[str | int] | None = None,
        judges: Sequence[Judge] | None = None,
        workers: int | None = None,
        per_device: int | None = None,
    ) -> None:
        for name, number in (("workers", workers), ("per_device", per_device)):
            if number is not None and number < 1:
                raise ConfigError(f"{name}: expected at least 1, got {number}")
        config = config or JudgeConfig()
        self._service: BuildService | None = None
        if judges is None:
            names = _device_names(config, devices)
            gpus = sum(name != "cpu" for name in names)
            spare = _cores() - _CORES_FOR_TIMING * gpus
            workers = workers or max(spare, 1)
            self._service = BuildService(protection=config.protection, jobs=workers)
            try:
                made = [Judge(config.replace(device=n), service=self._service) for n in names]
            except BaseException:
                self._service.close()
                raise
            self._owned = tuple(made)
            self.judges = self._owned
        else:
            if devices is not None or not judges:
                raise ConfigError("judges: expected at least one, and no devices beside them")
            self._owned = ()
            self.judges = tuple(judges)
        workers = workers or _cores()
        self._closing = False
        self._lock = threading.Lock()
        self._pending: set[Future[Verdict]] = set()
        self._ready: queue.Queue[_Item | None] = queue.Queue()
        # One judge for each kind of GPU: what is compiled for one serves all of its kind.
        self._compilers = {
            judge.device_name: judge for judge in self.judges if judge.device.type != "cpu"
        }
        self._ahead = concurrent.futures.ThreadPoolExecutor(workers, "kernelgym-prepare")
        share = -(-workers // len(self.judges))
        self._threads = [
            threading.Thread(
                target=self._serve, args=(judge,), name=f"kernelgym-judge-{index}", daemon=True
            )
            for index, judge in enumerate(self.judges)
            for _ in range(per_device or (share if judge.device.type == "cpu" else 1))
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> JudgePool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> JudgePool:
        """The pool itself: Gymnasium copies an environment's arguments, and processes cannot be."""
        return self

    @property
    def config(self) -> JudgeConfig:
        """How its first judge judges."""
        return self.judges[0].config

    @property
    def size(self) -> str:
        """Which shapes its first judge judges at."""
        return self.judges[0].size

    def submit(
        self, task: Task | str, workspace: Any, *, config: JudgeConfig | None = None
    ) -> Future[Verdict]:
        """Queues a job.

        Args:
            task: As for `Judge.evaluate`.
            workspace: As for `Judge.evaluate`.
            config: In place of the pool's own, apart from the device.

        Returns:
            The future verdict. Its exception is the `EnvironmentFault` that prevented one; it can
            be cancelled until a device takes it.

        Raises:
            UsageError: The task is unknown or the workspace no workspace.
            EnvironmentFault: The pool is closed.
        """
        found = find_task(task)
        files = {file.path: file.text for file in workspace_files(workspace)}
        item = _Item(found, files, config, Future())
        with self._lock:
            if self._closing:
                raise EnvironmentFault("expected an open pool, this one is closed")
            self._pending.add(item.future)
            if self._compilers:
                self._ahead.submit(self._prepare, item)
            else:
                self._ready.put(item)
        item.future.add_done_callback(self._forget)
        return item.future

    def evaluate(
        self, task: Task | str, workspace: Any, *, config: JudgeConfig | None = None
    ) -> Verdict:
        """Judges one candidate on whichever device is free first; see `Judge.evaluate`."""
        return self.submit(task, workspace, config=config).result()

    async def aevaluate(
        self, task: Task | str, workspace: Any, *, config: JudgeConfig | None = None
    ) -> Verdict:
        """`evaluate` for callers in an event loop; cancelling it takes the job from the queue."""
        return await asyncio.wrap_future(self.submit(task, workspace, config=config))

    def evaluate_many(
        self,
        jobs: Iterable[JobLike],
        *,
        workers: int | None = None,
        resume: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
    ) -> list[Verdict | EnvironmentFault]:
        """Judges a batch; see the function of this name.

        Args:
            jobs: What to judge.
            workers: Of no effect: the pool has its own.
            resume: See `evaluate_many`.
            progress: See `evaluate_many`.
        """
        todo = [job if isinstance(job, Job) else Job(*job) for job in jobs]
        prepared = [(find_task(job.task), workspace_files(job.workspace)) for job in todo]
        log = VerdictLog(resume) if resume is not None else None
        results: list[Verdict | EnvironmentFault | None] = [None] * len(todo)
        futures: dict[Future[Verdict], int] = {}
        try:
            for index, (task, files) in enumerate(prepared):
                known = self._known(log, task, files) if log is not None else None
                if known is None:
                    texts = {file.path: file.text for file in files}
                    futures[self.submit(task, texts)] = index
                results[index] = known
            done = len(todo) - len(futures)
            if progress is not None and done:
                progress(done, len(todo))
            for future in concurrent.futures.as_completed(futures):
                index = futures[future]
                results[index] = result = _settled(future)
                if log is not None and isinstance(result, Verdict):
                    made = result.provenance
                    task, files = prepared[index]
                    log.append(question(task, files, self.config, made.size, made.device), result)
                done += 1
                if progress is not None:
                    progress(done, len(todo))
        finally:
            for future in futures:
                future.cancel()
        return [result for result in results if result is not None]

    def close(self, grace: float = 0.0) -> None:
        """Cancels what no device has taken yet, ends what is running, and frees what it holds.

        Calling it twice is fine. Judges that were given are not interrupted: their judgements are
        waited for.

        Args:
            grace: Seconds that running judgements are given to come to their verdicts.
        """
        with self._lock:
            first, self._closing = not self._closing, True
            pending = list(self._pending)
        if not first:
            return
        running = [future for future in pending if not future.cancel()]
        concurrent.futures.wait(running, grace)
        for judge in self._owned:
            judge.close()  # ends the candidates that run
        # Every job passes through both stages, cancelled or not, so that none is left waiting.
        self._ahead.shutdown()
        for _ in self._threads:
            self._ready.put(None)
        for thread in self._threads:
            thread.join()
        if self._service is not None:
            self._service.close()

    def _forget(self, future: Future[Verdict]) -> None:
        with self._lock:
            self._pending.discard(future)

    # --- stages ------------------------------------------------------------------------------

    def _prepare(self, item: _Item) -> None:
        try:
            for judge in self._compilers.values():
                if not self._closing and not item.future.cancelled():
                    judge.prepare(item.files, config=item.config)
        finally:  # whatever has failed, the judgement meets it again
            self._ready.put(item)

    def _serve(self, judge: Judge) -> None:
        """What one thread of a device does."""
        while (item := self._ready.get()) is not None:
            if not item.future.set_running_or_notify_cancel():
                continue
            try:
                item.future.set_result(self._judged(judge, item))
            except KernelGymError as error:
                item.future.set_exception(error)
            except BaseException as error:  # a defect, and this job's alone
                fault = EnvironmentFault(f"the judge failed: {type(error).__name__}: {error}")
                fault.__cause__ = error
                item.future.set_exception(fault)

    def _judged(self, judge: Judge, item: _Item) -> Verdict:
        """The verdict; once more where the standby process, and with it the candidate, was lost."""
        for _ in range(2):
            before = judge.losses
            try:
                verdict = judge.evaluate(item.task, item.files, config=item.config)
            except SandboxFault:
                if judge.losses == before:
                    raise
            else:
                if judge.losses == before:
                    return verdict
            if self._closing and judge in self._owned:
                raise EnvironmentFault("the pool was closed during the judgement")
        raise SandboxFault("the process that candidates are forked from ended twice")

    def _known(self, log: VerdictLog, task: Task, files: tuple[SourceFile, ...]) -> Verdict | None:
        places = dict.fromkeys((judge.size, judge.device_name) for judge in self.judges)
        found = (log.find(question(task, files, self.config, *place)) for place in places)
        return next((verdict for verdict in found if verdict is not None), None)


def evaluate_many(
    jobs: Iterable[JobLike],
    config: JudgeConfig | None = None,
    *,
    devices: Sequence[str | int] | None = None,
    judge: Judge | JudgePool | None = None,
    workers: int | None = None,
    per_device: int | None = None,
    resume: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> list[Verdict | EnvironmentFault]:
    """Judges many candidates side by side, on one device or several.

    Args:
        jobs: What to judge.
        config: How.
        devices: On what, such as `[0, 1]`; see `JudgePool`. By default the configuration's device.
        judge: A judge or a pool to use, which stays open, in place of `config` and `devices`.
        workers: See `JudgePool`.
        per_device: See `JudgePool`.
        resume: A log (`kernelgym.judge.verdict_log`): every verdict is appended to it, and verdicts
            found in it for the same task, sources, configuration and kind of device are not
            reached again.
        progress: Called after each job with (done, total), from the calling thread.

    Returns:
        For each job, in order: its verdict, or the fault that prevented one. When the call is
        interrupted, what runs is ended, and verdicts reached are in the log.

    Raises:
        UsageError: A job is no job: its task is unknown or its workspace no workspace; or `resume`
            is no such log. Nothing has been judged then.
        ConfigError: See `JudgePool`.
    """
    jobs = tuple(jobs)
    if judge is not None and (config is not None or devices is not None):
        raise ConfigError("judge: expected no config or devices beside it, the judge has its own")
    if isinstance(judge, JudgePool):
        return judge.evaluate_many(jobs, resume=resume, progress=progress)
    judges = None if judge is None else (judge,)
    pool = JudgePool(config, devices=devices, judges=judges, workers=workers, per_device=per_device)
    with pool:
        return pool.evaluate_many(jobs, resume=resume, progress=progress)


async def aevaluate(
    task: Task | str,
    source_or_files: Any,
    *,
    judge: Judge | JudgePool | None = None,
    **config: Any,
) -> Verdict:
    """`kernelgym.evaluate` for callers in an event loop.

    Args:
        task: A task, its id, or a path.
        source_or_files: Text of `model_new.py`, a mapping from path to text, or a `Workspace`.
        judge: A judge or a pool to use; without one, a judge is made for this verdict alone.
        **config: Fields of `JudgeConfig`, over those of the judge.

    Example:
        >>> async def best(sources):  # doctest: +SKIP
        ...     with JudgePool(devices=[0, 1]) as pool:
        ...         return await asyncio.gather(
        ...             *(aevaluate("L1/19", source, judge=pool) for source in sources)
        ...         )
    """
    if judge is None:
        return await asyncio.to_thread(evaluate, task, source_or_files, **config)
    changed = judge.config.replace(**config) if config else None
    if isinstance(judge, JudgePool):
        return await judge.aevaluate(task, source_or_files, config=changed)
    call = functools.partial(judge.evaluate, task, source_or_files, config=changed)
    return await asyncio.to_thread(call)


def _settled(future: Future[Verdict]) -> Verdict | EnvironmentFault:
    try:
        return future.result()
    except EnvironmentFault as fault:
        return fault
    except concurrent.futures.CancelledError:
        return EnvironmentFault("the pool was closed before the judgement began")
    except KernelGymError as error:  # whatever it is, it is this job's alone
        return EnvironmentFault(str(error))


def _device_names(config: JudgeConfig, devices: Sequence[str | int] | None) -> list[str]:
    if devices is None:
        return [str(resolve_device(config.device))]
    if isinstance(devices, str) or not devices:
        raise ConfigError(f"devices: expected a list such as [0, 1], got {devices!r}")
    names = [f"cuda:{name}" if isinstance(name, int) else name for name in devices]
    resolved = [str(resolve_device(config.replace(device=name).device)) for name in names]
    twice = sorted({name for name in resolved if name != "cpu" and resolved.count(name) > 1})
    if twice:
        raise ConfigError(f"devices: expected each GPU once, got {', '.join(twice)} again")
    return resolved


def _cores() -> int:
    return len(os.sched_getaffinity(0))
