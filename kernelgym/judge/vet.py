"""Vetting tasks from elsewhere: each is run in a confined process before anything else runs it."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import site
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec
import psutil

import kernelgym
import kernelgym.tasks
from kernelgym.errors import SandboxFault, UsageError
from kernelgym.judge.vetting import Finding, Order, Reason, Row
from kernelgym.tasks import Task
from kernelgym.tasks.format import SIZES
from kernelgym.tasks.sources import Loaded, Rejection
from kernelgym.toolchain.sandbox import run_confined

__all__ = ["VetReport", "vet"]

_BATCH = 50  # rows for each process: importing torch takes seconds
_START_SECONDS = 180.0


@dataclasses.dataclass(frozen=True)
class VetReport:
    """Which tasks are fit to be judged.

    Attributes:
        accepted: The fit ones, in order.
        rejected: The others, rows that could not be read among them, each with its reason: one of
            `kernelgym.judge.vetting.Reason`, or `"duplicate"`.
    """

    accepted: tuple[Task, ...]
    rejected: tuple[Rejection, ...]


def vet(
    tasks: Loaded | Iterable[Task],
    *,
    size: str = "small",
    memory: int | None = None,
    seconds: float = 60.0,
    protection: str = "standard",
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> VetReport:
    """Runs tasks in confined processes, and says which are fit to be judged.

    A task is fit when it imports; runs on tensors without values and gives the same shapes with
    them; needs no more memory than there is, which is found out before it gets any; gives equal
    outputs for equal inputs; and gives outputs that are neither constant, nor an input, nor the
    same whatever the input.

    Args:
        tasks: Tasks, or what `kernelgym.tasks.load` returned, whose rejected rows are kept.
        size: The preset that is run; a task without presets is run as it is.
        memory: Bytes that a task may take; by default what is available now, shared by the
            workers.
        seconds: Wall-clock limit of a task.
        protection: How the processes are confined: `"basic"`, `"standard"` or `"hardened"`.
        workers: Processes at a time; by default as many as the machine has cores.
        progress: Called with the number of tasks vetted so far.

    Raises:
        UsageError: An argument is not accepted.
        SandboxFault: No process could be confined, or started.
    """
    if size not in SIZES:
        raise UsageError(f"size: expected one of {', '.join(SIZES)}, got {size!r}")
    workers = workers if workers is not None else len(os.sched_getaffinity(0))
    for name, value in (("workers", workers), ("seconds", seconds), ("memory", memory)):
        if value is not None and not value > 0:
            raise UsageError(f"{name}: expected more than 0, got {value!r}")
    rejected = list(tasks.rejected) if isinstance(tasks, Loaded) else []
    given = tuple(tasks)
    memory = memory or int(psutil.virtual_memory().available * 0.8) // workers
    batches = [given[start : start + _BATCH] for start in range(0, len(given), _BATCH)]

    def run(batch: Sequence[Task]) -> list[Finding]:
        return _vet_batch(batch, size, memory, seconds, protection)

    accepted: list[Task] = []
    done = 0
    with ThreadPoolExecutor(workers) as pool:
        for batch, findings in zip(batches, pool.map(run, batches), strict=True):
            for task, finding in zip(batch, findings, strict=True):
                if finding.reason is None:
                    accepted.append(task)
                else:
                    where = f"{task.path} ({task.id})"
                    rejected.append(Rejection(where, finding.reason.value, finding.message))
            done += len(batch)
            if progress is not None:
                progress(done)
    return VetReport(tuple(accepted), tuple(rejected))


def _vet_batch(
    tasks: Sequence[Task], size: str, memory: int, seconds: float, protection: str
) -> list[Finding]:
    """One finding a task; a task whose vetting ends the whole process is blamed for it."""
    findings: list[Finding] = []
    while len(findings) < len(tasks):
        rest = tasks[len(findings) :]
        found, how = _run(rest, size, memory, seconds, protection)
        findings.extend(found)
        if len(found) < len(rest):
            findings.append(Finding(len(found), Reason.CRASH, f"it ended the vetting: {how}"))
    return findings


def _run(
    tasks: Sequence[Task], size: str, memory: int, seconds: float, protection: str
) -> tuple[list[Finding], str]:
    rows = tuple(Row(t.id, t.level, t.number, t.name, t.path, t.text) for t in tasks)
    with tempfile.TemporaryDirectory(prefix="kernelgym-vet-") as folder:
        order = pathlib.Path(folder, "order.json")
        order.write_bytes(msgspec.json.encode(Order(rows, size, memory, seconds)))
        finished = run_confined(
            [sys.executable, "-m", "kernelgym.judge.vetting", str(order)],
            cwd=folder,
            readable=_readable(),
            writable=[folder],
            wall_seconds=_START_SECONDS + (seconds + 1) * len(tasks),
            env={
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
                "PYTHONDONTWRITEBYTECODE": "1",
                # One thread, so that forking is safe; see kernelgym.judge.vetting.
                "OMP_NUM_THREADS": "1",
                "MKL_NUM_THREADS": "1",
                "OPENBLAS_NUM_THREADS": "1",
            },
            protection=protection,
        )
    lines = [line for line in finished.stdout.splitlines() if line.startswith("{")]
    findings = [msgspec.json.decode(line, type=Finding) for line in lines]
    how = f"status {finished.returncode}: {finished.stderr.strip()[-300:]}"
    if not findings and finished.returncode > 0 and "Traceback" in finished.stderr:
        raise SandboxFault(f"tasks could not be vetted, {how}")
    return findings, how


def _readable() -> tuple[str, ...]:
    """What Python, torch and kernelgym read."""
    python = (sys.prefix, sys.base_prefix, *site.getsitepackages(), *filter(None, sys.path))
    packages = (kernelgym.__file__, kernelgym.tasks.__file__)
    folders = (*python, *(str(pathlib.Path(file).parent) for file in packages))
    return tuple(sorted({path for path in map(os.path.realpath, folders) if os.path.exists(path)}))
