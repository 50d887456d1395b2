"""One reference timed in eager mode and compiled, by a process that does this for task after task.

`baselines build` starts some of these processes (`serve`). In the first round they compile, many at a
time, and run what they have compiled once, one at a time, so that Inductor's and Triton's caches on
disk hold the kernels and the choice among their configurations. In the second round each task is
compiled once more, out of those caches, and then measured while nothing else runs on the GPU.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import functools
import gc
import os
import pathlib
import random
import time
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from statistics import median
from typing import Any, cast

import filelock
import torch

from kernelgym._version import __version__
from kernelgym.judge import timing
from kernelgym.judge.baseline_store import BaselineRecord, Setting, source_digest
from kernelgym.judge.device import GpuFacts, arithmetic, gpu_facts, settle
from kernelgym.judge.device_data import setting_of
from kernelgym.judge.gpu_call import CacheFlush, timed_call
from kernelgym.judge.nvml import ClockLog, open_clocks
from kernelgym.judge.reference import DTYPES, train_mode
from kernelgym.judge.verdict import Measurement, Speedup
from kernelgym.tasks import Task, get

__all__ = [
    "OUT_OF_MEMORY",
    "BaselineJob",
    "Bench",
    "blank_record",
    "measure",
    "serve",
    "warm",
]

OUT_OF_MEMORY = "out of memory"
_FLUSH_OVER_L2 = 4
_POLL_SECONDS = 0.005
_SEED = 20_260_000
_MOST_ERROR = 300
_AUTOTUNED = "max-autotune-no-cudagraphs"
_COMPILERS = 14  # of those that max-autotune may run at a time
# Nanoseconds are what the events resolve; more digits would say nothing.
_DIGITS = 3


@dataclasses.dataclass(frozen=True)
class BaselineJob:
    """What one process is asked to do next.

    Attributes:
        task: Task id.
        size: The preset.
        protocol: Decides between train and eval mode, as in `JudgeConfig`.
        precision: The precision class.
        kinds: Which of `baseline_store.KINDS` to time, eager among them.
        timed: Whether to measure; otherwise it is compiled and no more.
        anchored: Whether eager is timed for the others' ratios alone, and has a record already.
    """

    task: str
    size: str
    protocol: str
    precision: str
    kinds: tuple[str, ...]
    timed: bool
    anchored: bool = False

    @property
    def recorded(self) -> tuple[str, ...]:
        """The kinds that get a record."""
        return tuple(kind for kind in self.kinds if not (self.anchored and kind == "eager"))


@dataclasses.dataclass
class Bench:
    """Where references are timed.

    Attributes:
        device: The GPU.
        facts: Facts of it.
        lock: Path of the lock that makes work on it exclusive.
        seconds_of: Makes one call and gives its device seconds.
    """

    device: torch.device
    facts: GpuFacts
    lock: pathlib.Path
    seconds_of: Callable[[Callable[[], Any]], float]

    @classmethod
    def of(cls, index: int, folder: pathlib.Path) -> Bench:
        """A bench on a GPU by its index, with its lock in a folder."""
        device = torch.device("cuda", index)
        torch.cuda.set_device(device)
        facts = gpu_facts(device)
        flush = CacheFlush(device, _FLUSH_OVER_L2 * max(facts.l2_bytes, 2**20))
        lock = folder / f"gpu-{facts.uuid}.lock"
        return cls(device, facts, lock, lambda call: timed_call(call, device, flush)[1])

    def exclusive(self) -> filelock.BaseFileLock:
        """The lock; it falls open when its holder dies."""
        self.lock.parent.mkdir(parents=True, exist_ok=True)
        return filelock.FileLock(self.lock)


def serve(connection: Connection, index: int, folder: str, log: str) -> None:
    """A process's main function: answers each `BaselineJob` until None comes or the pipe closes.

    Args:
        connection: Brings jobs; takes a list of `BaselineRecord` for each.
        index: The GPU's index.
        folder: Where the GPU's lock lies.
        log: File for what compilers print, and for a traceback when the process dies.
    """
    import torch._inductor.config as inductor

    # Of no use on a terminal that shows progress.
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(file, 1)
    os.dup2(file, 2)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    inductor.compile_threads = 1  # there are many processes like this one
    bench = Bench.of(index, pathlib.Path(folder))
    with contextlib.suppress(EOFError):
        while (job := connection.recv()) is not None:
            connection.send(measure(job, bench) if job.timed else warm(job, bench))
            torch._dynamo.reset()
            gc.collect()
            torch.cuda.empty_cache()
            # A context that a failed kernel has broken ends the process; the next job goes elsewhere.
            torch.cuda.synchronize()


def warm(job: BaselineJob, bench: Bench) -> list[BaselineRecord]:
    """Compiles a task, and runs it once in turn, which chooses among its kernels' configurations.

    What goes wrong here goes wrong again when it is measured, and is recorded then.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(arithmetic(job.precision))
        turn = _Turn(bench)
        stack.callback(turn.leave)
        try:
            model, inputs = _made(job, get(job.task), bench.device, turn)
            _call(model, inputs, "compile", turn)()
            settle(bench.device)
        except Exception as error:
            print(f"{job.task}: not compiled beforehand: {_said(error)}", flush=True)
    return []


def measure(job: BaselineJob, bench: Bench) -> list[BaselineRecord]:
    """Times a task's reference in the kinds asked for, side by side.

    Returns:
        A record for each kind; one that did not run says why in `error`.
    """
    task = get(job.task)
    blank = blank_record(job, setting_of(bench.facts))
    errors: dict[str, str] = {}
    compile_seconds: dict[str, float] = {}
    with contextlib.ExitStack() as stack:
        stack.enter_context(arithmetic(job.precision))
        turn = _Turn(bench)
        stack.callback(turn.leave)
        try:
            model, inputs = _made(job, task, bench.device, turn)
        except Exception as error:
            return [_failed(blank, kind, error, task, job) for kind in job.recorded]
        calls: dict[str, Callable[[], Any]] = {}
        for kind in job.kinds:
            began = time.monotonic()
            waited = turn.waited
            try:
                calls[kind] = _call(model, inputs, kind, turn)
                if kind != "eager":
                    calls[kind]()
                    settle(bench.device)
                    spent = time.monotonic() - began - (turn.waited - waited)
                    compile_seconds[kind] = round(spent, 2)
            except Exception as error:
                calls.pop(kind, None)
                errors[kind] = _said(error)
        turn.enter()
        return _timed(job, bench, blank, calls, errors, compile_seconds, task)


# --- parts ---------------------------------------------------------------------------------------


class _Turn:
    """This process's turn on the GPU; entering it again, or leaving it twice, does nothing."""

    def __init__(self, bench: Bench) -> None:
        self._lock = bench.exclusive()
        self.waited = 0.0

    def enter(self) -> None:
        if not self._lock.is_locked:
            began = time.monotonic()
            self._lock.acquire(poll_interval=_POLL_SECONDS)
            self.waited += time.monotonic() - began

    def leave(self) -> None:
        self._lock.release(force=True)


def _made(
    job: BaselineJob, task: Task, device: torch.device, turn: _Turn
) -> tuple[torch.nn.Module, list[Any]]:
    """The reference and its inputs, on the GPU. Values matter little here: none is checked.

    The weights are drawn on the CPU, which can be done while others measure.
    """
    train = train_mode(job.protocol, task, task.facts(job.size).output_rule)
    dtype = DTYPES.get(job.precision, torch.float32)
    module = task.module(job.size)
    torch.manual_seed(_SEED)
    model = module.Model(*module.get_init_inputs())
    turn.enter()
    try:
        model = model.to(device=device, dtype=dtype).train(train)
        inputs = task.draw_inputs(job.size, _SEED, 0, device, dtype)
        settle(device)
        return model, inputs
    finally:
        turn.leave()


def _call(model: torch.nn.Module, inputs: list[Any], kind: str, turn: _Turn) -> Callable[[], Any]:
    called: Callable[..., Any] = model
    if kind != "eager":

        def backend(graph: torch.fx.GraphModule, example: list[Any]) -> Callable[..., Any]:
            if kind == "compile_max_autotune":
                turn.enter()  # it tries its kernels while it compiles
                return _inductor(graph, example, _AUTOTUNED)
            compiled = _inductor(graph, example)

            def run(*arguments: Any) -> Any:
                turn.enter()
                return compiled(*arguments)

            return run

        called = torch.compile(model, backend=backend)

    def forward() -> Any:
        with torch.no_grad():
            return called(*inputs)

    return forward


def _inductor(
    graph: torch.fx.GraphModule, example: list[Any], mode: str = ""
) -> Callable[..., Any]:
    """What `torch.compile` does with a graph, without its running it."""
    from torch._inductor import list_mode_options
    from torch._inductor.compile_fx import compile_fx

    if not mode:
        return cast("Callable[..., Any]", compile_fx(graph, example))
    patches = {**list_mode_options(mode), "compile_threads": _COMPILERS}
    return cast("Callable[..., Any]", compile_fx(graph, example, config_patches=patches))


def _timed(
    job: BaselineJob,
    bench: Bench,
    blank: BaselineRecord,
    calls: dict[str, Callable[[], Any]],
    errors: dict[str, str],
    compile_seconds: dict[str, float],
    task: Task,
) -> list[BaselineRecord]:
    peaks: dict[str, int] = {}
    for kind in list(calls):
        try:
            peaks[kind] = _peak(calls[kind], bench.device)
        except Exception as error:
            del calls[kind]
            errors[kind] = _said(error)
    if not calls:
        return [_failed(blank, kind, errors[kind], task, job) for kind in job.recorded]
    sides = {kind: functools.partial(bench.seconds_of, call) for kind, call in calls.items()}
    began = time.monotonic()
    for side in sides.values():
        side()
    planned = timing.plan(time.monotonic() - began)
    log = ClockLog(open_clocks(bench.facts.uuid) if bench.device.type == "cuda" else None)
    rng = random.Random(_SEED)
    batches = timing.take_turns(sides, planned, rng, between=log.read)
    clock = dict(log.summary()).get("sm_median")
    records = []
    for kind in job.recorded:
        if kind not in batches:
            records.append(_failed(blank, kind, errors[kind], task, job))
            continue
        found: Measurement = timing.measurement(batches[kind], rng)
        ratio = None
        if kind != "eager" and "eager" in batches:
            wide = timing.speedup(batches[kind], batches["eager"], rng)
            ratio = Speedup(*(round(end, 6) for end in (wide.value, wide.low, wide.high)))
        records.append(
            dataclasses.replace(
                blank,
                kind=kind,
                median=float(f"{found.median:.6g}"),
                low=float(f"{found.low:.6g}"),
                high=float(f"{found.high:.6g}"),
                batches=tuple(round(median(batch) * 1e6, _DIGITS) for batch in batches[kind]),
                ratio=ratio,
                peak_memory=peaks[kind],
                compile_seconds=compile_seconds.get(kind),
                clock=clock,
            )
        )
    return records


def _peak(call: Callable[[], Any], device: torch.device) -> int:
    """Bytes that one call takes at most beyond what there is; also warms it up."""
    call()
    if device.type != "cuda":
        return 0
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    call()
    torch.cuda.synchronize(device)
    return max(torch.cuda.max_memory_allocated(device) - before, 0)


def blank_record(job: BaselineJob, setting: Setting) -> BaselineRecord:
    """A record of a job's task with neither a kind nor a time."""
    task = get(job.task)
    facts = task.facts(job.size)
    train = train_mode(job.protocol, task, facts.output_rule)
    scale = DTYPES.get(job.precision, torch.float32).itemsize / torch.float32.itemsize
    return BaselineRecord(
        task=task.id,
        size=job.size,
        mode="train" if train else "eval",
        precision=job.precision,
        kind="",
        source=source_digest(task, job.size),
        setting=setting,
        date=datetime.date.today().isoformat(),
        kernelgym=__version__,
        flops=facts.flops,
        convolution_flops=facts.convolution_flops,
        min_bytes=int(facts.min_bytes * scale),
    )


def _failed(
    blank: BaselineRecord, kind: str, error: BaseException | str, task: Task, job: BaselineJob
) -> BaselineRecord:
    said = error if isinstance(error, str) else _said(error)
    needed = task.facts(job.size).memory_bytes if said == OUT_OF_MEMORY else None
    return dataclasses.replace(blank, kind=kind, error=said, needed=needed)


def _said(error: BaseException) -> str:
    if _caused_by(error, torch.OutOfMemoryError):
        return OUT_OF_MEMORY
    first = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {first}"[:_MOST_ERROR]


def _caused_by(error: BaseException | None, kind: type[BaseException]) -> bool:
    while error is not None:
        if isinstance(error, kind):
            return True
        error = error.__cause__ or error.__context__
    return False
