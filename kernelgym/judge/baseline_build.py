"""Measuring the baselines of many tasks on this machine's GPU: two rounds, and a file that grows.

In the first round many processes compile all tasks side by side, which fills the compilers' caches
on disk; meanwhile the GPU, which has nothing else to do, chooses among kernels' configurations, for
one process at a time. In the second few processes take the tasks out of those caches and measure
them, one after another under the GPU's lock. Records are appended as they come, so that a build that was stopped
goes on where it was.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import time
from collections.abc import Callable, Sequence

from kernelgym.config import PRECISIONS, PROTOCOLS
from kernelgym.errors import ConfigError, UsageError
from kernelgym.judge.baseline_store import (
    KINDS,
    BaselineRecord,
    Setting,
    device_slug,
    encode_record,
    read_records,
    source_digest,
    user_folder,
    write_records,
)
from kernelgym.judge.baseline_worker import (
    OUT_OF_MEMORY,
    BaselineJob,
    Bench,
    blank_record,
    serve,
)
from kernelgym.judge.crew import Crew, Lost
from kernelgym.judge.device_data import setting_of
from kernelgym.judge.reference import train_mode
from kernelgym.tasks import get, ids
from kernelgym.toolchain.cache import default_cache_root

__all__ = ["BuildOptions", "BuildSummary", "build", "sample"]

# Bytes on the GPU of a process itself, and of a task's pass beside what its facts say.
_PROCESS_BYTES = 2.5e9
_PASS_FACTOR = 1.5
_USABLE = 0.9
_TIMERS = 4
# The first round may take this part of a limit: what is not compiled by then is compiled later.
_FIRST_ROUND = 0.5


@dataclasses.dataclass(frozen=True)
class BuildOptions:
    """What to measure.

    Attributes:
        tasks: Ids; empty for all.
        size: The preset.
        protocol: Decides between train and eval mode.
        precision: The precision class.
        kinds: Of `baseline_store.KINDS`; eager is measured beside the others in any case.
        device: The GPU's index.
        out: The file of records; by default the user's for this card.
        workers: Processes that compile; by default one less than there are cores.
        limit_seconds: Stop after so long with what there is.
        task_seconds: Give up on a task after so long.
        again: Whether to measure what the file has already.

    Raises:
        ConfigError: A value is not one of those accepted.
    """

    tasks: tuple[str, ...] = ()
    size: str = "full"
    protocol: str = "audited"
    precision: str = "default"
    kinds: tuple[str, ...] = ("eager", "compile")
    device: int = 0
    out: pathlib.Path | None = None
    workers: int | None = None
    limit_seconds: float | None = None
    task_seconds: float = 240.0
    again: bool = False

    def __post_init__(self) -> None:
        """Refuse what no builder understands."""
        for kind in self.kinds:
            if kind not in KINDS:
                raise ConfigError(f"kinds: expected one of {', '.join(KINDS)}, got {kind!r}")
        if self.protocol not in PROTOCOLS:
            raise ConfigError(
                f"protocol: expected one of {', '.join(PROTOCOLS)}, got {self.protocol!r}"
            )
        if self.precision not in PRECISIONS:
            raise ConfigError(
                f"precision: expected one of {', '.join(PRECISIONS)}, got {self.precision!r}"
            )


@dataclasses.dataclass(frozen=True)
class BuildSummary:
    """What became of a build.

    Attributes:
        path: The file of records.
        measured: Records with a time that were added.
        failed: Records without one that were added.
        present: Tasks that the file had already.
        unfinished: Tasks that the time limit left out.
        seconds: What the two rounds took.
        log: The file with what the processes printed.
    """

    path: pathlib.Path
    measured: int
    failed: int
    present: int
    unfinished: int
    seconds: tuple[float, float]
    log: pathlib.Path


def build(
    options: BuildOptions, progress: Callable[[str, int, int], None] = lambda text, done, of: None
) -> BuildSummary:
    """Measures and stores baselines.

    Args:
        options: What to measure.
        progress: Called with what is going on, and how many of how many tasks are done.

    Raises:
        ConfigError: There is no GPU.
        UnknownTaskError: No task has one of the ids.
        UsageError: A task is not one of kernelgym's own.
    """
    import torch

    if not torch.cuda.is_available() or options.device >= torch.cuda.device_count():
        raise ConfigError(f"device: expected an NVIDIA GPU of index {options.device}, got none")
    folder = default_cache_root()
    bench = Bench.of(options.device, folder)
    out = options.out or user_folder() / f"{device_slug(bench.facts.name)}.jsonl"
    log = out.with_suffix(".log")
    out.parent.mkdir(parents=True, exist_ok=True)
    known = read_records(out) if out.is_file() else []
    write_records(out, known)  # without a line that was cut off
    setting = setting_of(bench.facts)
    jobs, present = _jobs(options, known, setting)
    room = _USABLE * torch.cuda.mem_get_info(bench.device)[0]
    cores = os.cpu_count() or 2
    book = _Book(out, setting)
    began = time.monotonic()
    until = None if options.limit_seconds is None else began + options.limit_seconds
    arguments = (options.device, str(folder), str(log))
    with Crew[BaselineJob](serve, arguments, options.workers or max(cores - 1, 1)) as crew:
        to_compile = [job for job in jobs if "compile" in job.kinds]
        crew.run(
            [dataclasses.replace(job, timed=False) for job in _slow_first(to_compile)],
            _Told(progress, "compiling", len(to_compile)),
            cost=_cost,
            budget=room,
            job_seconds=options.task_seconds,
            until=until and began + _FIRST_ROUND * (until - began),
        )
        between = time.monotonic()
        crew.shrink(_TIMERS)
        told = _Told(progress, "measuring", len(jobs), book)
        unfinished = crew.run(
            jobs,
            told,
            cost=_cost,
            budget=room,
            job_seconds=options.task_seconds,
            until=until,
        )
    records = read_records(out)
    last = {(r.key, r.source, r.setting.device, r.setting.torch): r for r in records}
    write_records(out, list(last.values()))
    return BuildSummary(
        out,
        book.measured,
        book.failed,
        present,
        unfinished,
        (between - began, time.monotonic() - between),
        log,
    )


def sample(count: int) -> tuple[str, ...]:
    """As many of kernelgym's tasks, spread evenly over all of them, always the same.

    Raises:
        UsageError: There are not so many.
    """
    every = tuple(ids())
    if not 0 < count <= len(every):
        raise UsageError(f"sample: expected 1 to {len(every)} tasks, got {count}")
    return tuple(every[int((i + 0.5) * len(every) / count)] for i in range(count))


class _Book:
    """Appends records to the file as they come, and counts them."""

    def __init__(self, path: pathlib.Path, setting: Setting) -> None:
        self._path = path
        self._setting = setting
        self.measured = self.failed = 0

    def add(self, records: Sequence[BaselineRecord]) -> None:
        with self._path.open("ab") as file:
            for record in records:
                file.write(encode_record(record))
                self.measured += record.median is not None
                self.failed += record.median is None

    def add_lost(self, job: BaselineJob, lost: Lost) -> None:
        """Notes that the process that had a job is gone."""
        blank = blank_record(job, self._setting)
        self.add([dataclasses.replace(blank, kind=k, error=lost.why) for k in job.recorded])


class _Told:
    """What a crew calls after each job: tells the progress, and keeps the records."""

    def __init__(
        self,
        progress: Callable[[str, int, int], None],
        what: str,
        total: int,
        book: _Book | None = None,
    ) -> None:
        self._progress, self._what, self._total, self._book = progress, what, total, book
        self._done = 0

    def __call__(self, job: BaselineJob, result: list[BaselineRecord] | Lost, alone: bool) -> bool:
        if self._book is not None:
            if isinstance(result, Lost):
                self._book.add_lost(job, result)
            elif not alone and any(record.error == OUT_OF_MEMORY for record in result):
                return True  # others held some of it
            else:
                self._book.add(result)
        self._done += 1
        self._progress(f"{self._what}: {job.task}", self._done, self._total)
        return False


def _jobs(
    options: BuildOptions, known: Sequence[BaselineRecord], setting: Setting
) -> tuple[list[BaselineJob], int]:
    """What is to be done, and how many tasks the file has already."""
    have: dict[tuple[str, str], list[BaselineRecord]] = {}
    for record in known:
        made = (record.size, record.precision, record.setting.device, record.setting.torch)
        wanted = (options.size, options.precision, setting.device, setting.torch)
        if made == wanted and not options.again:
            have.setdefault((record.task, record.source), []).append(record)
    jobs, present = [], 0
    for id_ in options.tasks or ids():
        task = get(id_)
        there: set[str] = set()
        records = have.get((id_, source_digest(task, options.size)), [])
        if records:  # else the mode, which takes a while to find, does not matter
            train = train_mode(options.protocol, task, task.facts(options.size).output_rule)
            mode = "train" if train else "eval"
            there = {record.kind for record in records if record.mode == mode}
        missing = set(options.kinds) - there
        if not missing:
            present += 1
            continue
        kinds = tuple(kind for kind in KINDS if kind in missing or kind == "eager")
        jobs.append(
            BaselineJob(
                id_,
                options.size,
                options.protocol,
                options.precision,
                kinds,
                timed=True,
                anchored="eager" not in missing and "eager" in there,
            )
        )
    return jobs, present


def _slow_first(jobs: Sequence[BaselineJob]) -> list[BaselineJob]:
    """Whole networks take longest to compile: started last, they would run on alone."""
    return sorted(jobs, key=lambda job: -get(job.task).level)


def _cost(job: BaselineJob) -> float:
    """GPU bytes that a process with this job takes."""
    return _PROCESS_BYTES + _PASS_FACTOR * get(job.task).facts(job.size).memory_bytes
