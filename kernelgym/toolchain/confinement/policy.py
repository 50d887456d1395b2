"""What a confined process may still do. A record only."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["LEVELS", "NOBODY", "Policy"]

LEVELS = ("basic", "standard", "hardened")
NOBODY = 65534
"""The user and group that root becomes."""


class Policy(NamedTuple):
    """What a process may still do once confined.

    A named tuple, because the module of `dataclasses` alone would double the launcher's start.

    Attributes:
        level: `"basic"`, `"standard"` or `"hardened"`.
        readable: Files and folders that may be read and executed; those that do not exist are
            skipped.
        writable: Files and folders that may also be written. Root gives folders to `NOBODY`.
        cpu_seconds: Processor time of each process, in whole seconds, or `None`.
        memory_bytes: Address space of each process, or `None` (CUDA needs `None`).
        file_bytes: Size of each file written, or `None`.
        max_processes: How many processes and threads there may be beyond those that the user has at
            the start, or `None`. Root is exempt from it.
        new_processes: Whether further processes may be started. `False` refuses them by a filter
            on system calls, which also refuses signals to others.
        new_threads: Whether, where no processes may be, further threads may be started.
        performance_counters: Whether root keeps, of all its privileges, the one that a GPU's driver
            asks for before it lets a process count (`CAP_PERFMON`). What else the kernel gives for
            it, performance events and BPF, a filter refuses.
    """

    level: str = "standard"
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    cpu_seconds: int | None = None
    memory_bytes: int | None = None
    file_bytes: int | None = None
    max_processes: int | None = None
    new_processes: bool = True
    performance_counters: bool = False
    new_threads: bool = True
