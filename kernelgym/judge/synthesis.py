"""Synthesising a set of training tasks: candidates, filters, a file, and a manifest beside it.

Candidates are numbered, each follows from (seed, number) alone, and they are accepted in order of
their numbers. So the file is the same however many processes work on it, and however often the
work was killed and taken up again: what has been examined is kept in `FILE.partial` until the end.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import hashlib
import os
import pathlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import IO, TypeAlias

import msgspec
import torch

from kernelgym._version import __version__
from kernelgym.errors import EnvironmentFault, RecordError, ToolchainFault, UsageError
from kernelgym.judge.device_models import H200
from kernelgym.judge.synthesis_filters import (
    Catalogue,
    Criteria,
    Examined,
    Filter,
    catalogue,
    examine,
)
from kernelgym.tasks import Task
from kernelgym.tasks.records import TaskRecord, encode
from kernelgym.tasks.synthesis import (
    CUDA_AGENT_LENGTHS,
    HELD_OUT,
    TRAIN,
    Composition,
    compositions,
)

__all__ = ["Manifest", "Progress", "manifest_path", "read_manifest", "sample", "synthesize"]

_CHUNK = 8
_AHEAD = 3  # chunks in flight for each worker
_MIN_YIELD = 0.02  # fewer accepted than this, and the criteria are to blame

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the numbers of candidates accepted and examined so far."""


@dataclasses.dataclass(frozen=True)
class Manifest:
    """How a file of tasks came about; the same for the same file.

    Attributes:
        version: Of kernelgym.
        torch: Version of torch, whose operators and compilers the filters ran.
        seed: The set's seed.
        count: Tasks in the file.
        lengths: Weights of 1, 2, … operators.
        criteria: The filters' thresholds.
        examined: Candidates looked at.
        dropped: How many each filter dropped, in the order applied.
        inductor: Tasks that inductor compiled too; `aot_eager` compiled them all.
        operators: Number of operators -> tasks.
        splits: Split -> tasks.
        compositions: Split -> different compositions; none is in both.
        sha256: Of the file.
    """

    version: str
    torch: str
    seed: int
    count: int
    lengths: tuple[float, ...]
    criteria: Criteria
    examined: int
    dropped: dict[str, int]
    inductor: int
    operators: dict[str, int]
    splits: dict[str, int]
    compositions: dict[str, int]
    sha256: str


@dataclasses.dataclass(frozen=True)
class _Settings:
    """What determines a file; the first line of a partial one."""

    version: str
    torch: str
    seed: int
    lengths: tuple[float, ...]
    criteria: Criteria


@dataclasses.dataclass(frozen=True)
class _Fate:
    """A candidate's line in a partial file."""

    index: int
    dropped: Filter | None
    record: TaskRecord | None = None
    inductor: bool = False


def synthesize(
    count: int,
    seed: int,
    out: str | pathlib.Path,
    *,
    criteria: Criteria | None = None,
    lengths: Sequence[float] = CUDA_AGENT_LENGTHS,
    workers: int | None = None,
    progress: Progress | None = None,
    overwrite: bool = False,
) -> Manifest:
    """Writes `count` accepted tasks to a file of JSON lines, and a manifest beside it.

    The work is done in processes of their own, which import the caller's main module as
    `multiprocessing` does: a script needs `if __name__ == "__main__":`.

    Args:
        count: How many tasks, at least 1.
        seed: Determines the tasks.
        out: The file; the manifest's name is in `manifest_path(out)`. Where `out` with `.partial`
            behind it exists, from a run that was killed, the work goes on from there.
        criteria: The filters' thresholds; by default those of CUDA Agent, on a model of an H200.
        lengths: Weights of 1, 2, … operators; by default as in CUDA-Agent-Ops-6K.
        workers: Processes; by default as many as the machine has cores. Changes nothing but time.
        progress: Told how far it is.
        overwrite: Whether a file that exists is replaced.

    Raises:
        UsageError: An argument is not accepted; the file exists; a partial file was begun with
            other settings; or the criteria let hardly anything pass.
        ToolchainFault: Candidates are to be compiled with inductor, and there is no g++.
        EnvironmentFault: A worker died.
    """
    out = pathlib.Path(out)
    criteria = criteria or Criteria(H200)
    workers = workers if workers is not None else len(os.sched_getaffinity(0))
    _check(count, seed, out, criteria, workers, overwrite)
    settings = _Settings(
        __version__, str(torch.__version__), seed, tuple(map(float, lengths)), criteria
    )
    partial = out.with_name(out.name + ".partial")
    fates = _resume(partial, settings)
    accepted = sum(fate.dropped is None for fate in fates)
    with partial.open("ab") as file:
        if not fates:
            file.truncate(0)
            _append(file, settings)
        if accepted < count:
            for fate in _examine_all(settings, len(fates), workers):
                _append(file, fate)
                fates.append(fate)
                accepted += fate.dropped is None
                if progress is not None:
                    progress(accepted, len(fates))
                if accepted == count:
                    break
                if len(fates) >= (count + 100) / _MIN_YIELD:
                    raise UsageError(
                        f"criteria: expected some that let tasks pass, got {accepted} accepted of "
                        f"{len(fates)} candidates; dropped: {_dropped(fates)}"
                    )
    manifest = _write(out, settings, _first(fates, count))
    partial.unlink()
    return manifest


def sample(count: int, seed: int, split: str) -> tuple[Task, ...]:
    """The first `count` tasks of a seed and split, made in this process, in seconds.

    They pass every filter of `synthesize` but compilation.

    Args:
        count: How many, at least 1.
        seed: Determines them.
        split: `"train"` or `"heldout"`.

    Raises:
        UsageError: An argument is not accepted.
    """
    if not isinstance(count, int) or count < 1:
        raise UsageError(f"count: expected a whole number of at least 1, got {count!r}")
    if split not in (TRAIN, HELD_OUT):
        raise UsageError(f"split: expected {TRAIN} or {HELD_OUT}, got {split!r}")
    criteria = Criteria(H200, compiles=False)
    known = catalogue()
    tasks: list[Task] = []
    seen: set[str] = set()
    for index, composition in compositions(seed):
        if composition.split != split or composition.structure in seen:
            continue
        seen.add(composition.structure)
        record = examine(index, seed, composition, criteria, known).record
        if record is not None:
            tasks.append(record.task(f"synthesised[{record.id}]"))
        if len(tasks) == count:
            break
    return tuple(tasks)


def manifest_path(out: str | pathlib.Path) -> pathlib.Path:
    """Where the manifest of a file of tasks lies: `tasks.jsonl` -> `tasks.manifest.json`."""
    return pathlib.Path(out).with_suffix(".manifest.json")


def read_manifest(out: str | pathlib.Path) -> Manifest:
    """The manifest of a file of tasks.

    Raises:
        RecordError: It cannot be read.
    """
    path = manifest_path(out)
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError) as error:
        raise RecordError(f"{path}: expected a manifest, got: {error}") from error


def _check(
    count: int, seed: int, out: pathlib.Path, criteria: Criteria, workers: int, overwrite: bool
) -> None:
    for name, value, least in (("count", count, 1), ("seed", seed, 0), ("workers", workers, 1)):
        if not isinstance(value, int) or value < least:
            raise UsageError(f"{name}: expected a whole number of at least {least}, got {value!r}")
    if not out.parent.is_dir():
        raise UsageError(f"out: expected a file in a folder that exists, got {str(out)!r}")
    if out.exists() and not overwrite:
        raise UsageError(f"out: expected a file that does not exist yet, got {str(out)!r}")
    if criteria.compiles and criteria.inductor_share > 0 and shutil.which("g++") is None:
        raise ToolchainFault(
            "inductor needs g++ on the PATH; install it, or set inductor_share to 0"
        )


def _resume(partial: pathlib.Path, settings: _Settings) -> list[_Fate]:
    """The fates that a run before has written; a last line that was cut short is cut off."""
    if not partial.exists():
        return []
    data = partial.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if not whole:
        return []
    header, *lines = whole.splitlines()
    try:
        begun = msgspec.json.decode(header, type=_Settings)
        fates = [msgspec.json.decode(line, type=_Fate) for line in lines]
    except msgspec.DecodeError as error:
        raise UsageError(f"{partial}: expected a run's fates, got: {error}; delete it") from error
    if begun != settings:
        raise UsageError(
            f"{partial}: expected the settings of this run, got one begun with others "
            f"(seed {begun.seed}, kernelgym {begun.version}, torch {begun.torch}, …); delete it "
            "to begin anew"
        )
    if fates:
        os.truncate(partial, len(whole))
    return fates


def _append(file: IO[bytes], value: _Settings | _Fate) -> None:
    file.write(msgspec.json.encode(value) + b"\n")
    file.flush()


_Numbered: TypeAlias = tuple[int, Composition]


def _examine_all(settings: _Settings, start: int, workers: int) -> Iterator[_Fate]:
    """The fates of all candidates from `start` on, in order, without end."""
    known = catalogue()
    chunks = _chunks(settings, start)
    context = torch.multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context)
    pending: collections.deque[tuple[list[_Fate], Future[list[Examined]]]] = collections.deque()
    with contextlib.ExitStack() as stack:
        stack.callback(pool.shutdown, wait=True, cancel_futures=True)
        try:
            while True:
                while len(pending) < _AHEAD * workers:
                    duplicates, fresh = next(chunks)
                    future = pool.submit(_examine_chunk, fresh, settings, known)
                    pending.append((duplicates, future))
                fates, future = pending.popleft()
                fates.extend(
                    _Fate(e.index, e.dropped, e.record, e.inductor) for e in future.result()
                )
                yield from sorted(fates, key=lambda fate: fate.index)
        except BrokenProcessPool as error:
            raise EnvironmentFault(
                "a process that examines candidates died (out of memory?); run it again, and it "
                "goes on from where it was"
            ) from error


def _chunks(settings: _Settings, start: int) -> Iterator[tuple[list[_Fate], list[_Numbered]]]:
    """Candidates in portions, those apart that are like an earlier one."""
    seen: set[str] = set()
    duplicates: list[_Fate] = []
    fresh: list[_Numbered] = []
    for index, composition in compositions(settings.seed, settings.lengths):
        duplicate = composition.structure in seen
        seen.add(composition.structure)
        if index < start:
            continue
        if duplicate:
            duplicates.append(_Fate(index, Filter.NEAR_DUPLICATE))
        else:
            fresh.append((index, composition))
        if len(fresh) + len(duplicates) == _CHUNK:
            yield duplicates, fresh
            duplicates, fresh = [], []


def _examine_chunk(
    numbered: list[_Numbered], settings: _Settings, known: Catalogue
) -> list[Examined]:
    """Runs in a worker."""
    import torch._inductor.config

    torch.set_num_threads(1)
    torch._inductor.config.compile_threads = 1  # the workers are the parallelism
    return [
        examine(index, settings.seed, composition, settings.criteria, known)
        for index, composition in numbered
    ]


def _first(fates: list[_Fate], count: int) -> list[_Fate]:
    """The fates up to the last task wanted: a partial file may hold more."""
    accepted = 0
    for position, fate in enumerate(fates, 1):
        accepted += fate.dropped is None
        if accepted == count:
            return fates[:position]
    return fates


def _dropped(fates: list[_Fate]) -> dict[str, int]:
    counts = collections.Counter(fate.dropped for fate in fates)
    return {name.value: counts[name] for name in Filter}


def _write(out: pathlib.Path, settings: _Settings, fates: list[_Fate]) -> Manifest:
    """Writes both files, each whole or not at all."""
    records = [fate.record for fate in fates if fate.record is not None]
    data = b"".join(map(encode, records))
    lengths = collections.Counter(len(record.operators) for record in records)
    splits = collections.Counter(record.split for record in records)
    different = {record.composition: record.split for record in records}
    manifest = Manifest(
        version=settings.version,
        torch=settings.torch,
        seed=settings.seed,
        count=len(records),
        lengths=settings.lengths,
        criteria=settings.criteria,
        examined=len(fates),
        dropped=_dropped(fates),
        inductor=sum(fate.inductor for fate in fates),
        operators={str(length): lengths[length] for length in sorted(lengths)},
        splits=dict(sorted(splits.items())),
        compositions=dict(sorted(collections.Counter(different.values()).items())),
        sha256=hashlib.sha256(data).hexdigest(),
    )
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
    for path, content in ((manifest_path(out), text), (out, data)):
        temporary = path.with_name(path.name + ".new")
        temporary.write_bytes(content)
        temporary.replace(path)
    return manifest
