"""What a candidate's process may still do: the policy that it is confined by."""

from __future__ import annotations

import glob
import os
import pathlib
import site
import sys
from collections.abc import Iterable

import kernelgym
from kernelgym.config import JudgeConfig
from kernelgym.judge.range_profiler import profiling_restricted
from kernelgym.toolchain.confinement import Policy
from kernelgym.toolchain.sandbox import SYSTEM_PATHS

__all__ = ["candidate_policy"]

_FILE_BYTES = 64 * 2**20
_MAX_THREADS = 256
_READ_BY_DRIVER = (
    *("/proc/driver", "/proc/devices", "/proc/modules", "/proc/cpuinfo"),
    *("/proc/meminfo", "/proc/stat", "/proc/sys/vm", "/sys/devices", "/sys/bus/pci", "/sys/module"),
)


def candidate_policy(
    config: JudgeConfig,
    scratch: pathlib.Path,
    readable: Iterable[pathlib.Path],
    *,
    gpu: bool = False,
    threads: bool = True,
) -> Policy:
    """The policy for one candidate.

    It reads Python, torch, kernelgym and its builds, writes its scratch folder, starts threads but
    no processes, and has no network. Where the GPU's driver lets only the privileged count, that
    privilege alone is left to it when counters are asked for. `memory_bytes` is what it may take
    beyond what the process has mapped already when it is confined.

    Args:
        config: Gives the level, and the limits on time and memory.
        scratch: Its folder.
        readable: Folders of the toolchain that it loads libraries from.
        gpu: Whether it runs on a GPU: it may then use the driver's devices, and its address space
            has no limit, for the driver maps all of the card's memory.
        threads: Whether it may start threads; the driver of a GPU does.
    """
    python = {sys.prefix, sys.base_prefix, *site.getsitepackages(), *filter(None, sys.path)}
    package = str(pathlib.Path(kernelgym.__file__).parent)
    folders = {os.path.realpath(path) for path in (*python, package, *map(str, readable))}
    return Policy(
        level=config.protection,
        readable=(
            *SYSTEM_PATHS,
            *sorted(filter(os.path.exists, folders)),
            *(_READ_BY_DRIVER if gpu else ()),
        ),
        writable=(str(scratch), *(_driver_paths() if gpu else ())),
        cpu_seconds=int(config.run_timeout) + 30,
        memory_bytes=None if gpu else config.memory_limit,
        file_bytes=_FILE_BYTES,
        max_processes=_MAX_THREADS,
        new_processes=False,
        performance_counters=gpu and config.counters and profiling_restricted() is not False,
        new_threads=threads,
    )


def _driver_paths() -> list[str]:
    """What CUDA's driver writes to: its devices, and the names of the threads that it starts.

    `/proc/self` is looked up by the candidate's own process.
    """
    devices = [path for path in glob.glob("/dev/nvidia*") if not os.path.isdir(path)]
    return [*sorted(devices), "/proc/self"]
