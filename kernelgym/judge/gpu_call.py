"""One call on a GPU, timed by events or watched by the profiler; used on both sides."""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from kernelgym.judge.protocol import KernelTime

__all__ = ["CacheFlush", "blocks_aside", "profiled_call", "timed_call"]

# A fifth of a millisecond at 2 GHz: some times what a Python forward takes to launch a kernel.
_LEAD_CYCLES = 400_000
# What the host takes to see that a GPU with nothing to do has nothing to do, and some more.
_TRAILING_SECONDS = 1e-4


class CacheFlush:
    """Leaves nothing of use in L2; its memory is taken on first use and kept.

    Half of it is written, then the other half read: the write-backs of the first are over when the
    second has been read. Lines that a program has had set aside for itself (a persisting access
    window) would survive both, so `release` first makes them ordinary ones.

    Args:
        device: The GPU.
        nbytes: How much is written and read: some times the size of L2.
    """

    def __init__(self, device: torch.device, nbytes: int) -> None:
        self._device = device
        self.nbytes = nbytes

    def release(self) -> None:
        """Makes what this process has had set aside in L2 as easy to displace as the rest."""
        if self._device.type == "cuda":
            # A card without such lines refuses, and needs none of it.
            _driver().cuCtxResetPersistingL2Cache()

    def __call__(self) -> None:
        """Queues the flush on the current stream."""
        written, read, total = self._memory
        written.zero_()
        torch.sum(read, dim=0, out=total)

    @functools.cached_property
    def _memory(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        count = max(self.nbytes // 8, 1)  # two halves of 4-byte numbers
        written = torch.empty(count, dtype=torch.float32, device=self._device)
        read = torch.zeros(count, dtype=torch.float32, device=self._device)
        return written, read, torch.zeros((), dtype=torch.float32, device=self._device)


_COPIES = ("Memcpy ", "Memset ")


def blocks_aside(device: torch.device, sizes: Sequence[int], count: int) -> list[torch.Tensor]:
    """Takes blocks out of torch's allocator, so that the next of these sizes lie elsewhere.

    How fast memory is depends a little on where it lies: by half a percent from one process to the
    next was seen. A median over several places does not.

    Args:
        device: The GPU.
        sizes: Bytes of what a call allocates.
        count: How many of each to take.
    """
    wanted = [size for _ in range(count) for size in sizes]
    return [torch.empty(size, dtype=torch.int8, device=device) for size in wanted]


def timed_call(
    call: Callable[[], Any], device: torch.device, flush: CacheFlush
) -> tuple[Any, float, float]:
    """Calls once between two events of the current stream, with nothing of use left in L2.

    The GPU waits, then flushes, so that the host is ahead by the time the call's first kernel can
    start: what a launch costs the host is not counted, unless it takes longer than that. Work that
    the call leaves on another stream, which the second event does not wait for, is added by the
    host's clock where it takes longer than a tenth of a millisecond.

    Args:
        call: What to time.
        device: The GPU.
        flush: What empties its L2 beforehand.

    Returns:
        What the call returned, device seconds between the events, and host seconds until the call
        returned (kernels may still run then).
    """
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.no_grad():
        torch.cuda.synchronize(device)
        flush.release()  # before the wait: it may itself wait for the GPU
        torch.cuda._sleep(_LEAD_CYCLES)
        flush()
        start.record()
        began = time.perf_counter()
        result = call()
        host_seconds = time.perf_counter() - began
        end.record()
    end.synchronize()
    ended = time.perf_counter()
    torch.cuda.synchronize(device)
    trailing = time.perf_counter() - ended
    seconds = start.elapsed_time(end) * 1e-3
    return result, seconds + (trailing if trailing > _TRAILING_SECONDS else 0.0), host_seconds


def profiled_call(
    call: Callable[[], Any], device: torch.device
) -> tuple[tuple[KernelTime, ...], tuple[str, ...]]:
    """Calls once under torch's profiler (CUPTI's activities) and lists what ran on the GPU.

    A kernel runs slower while it is watched, so nothing is timed here for a verdict.

    Returns:
        Launches and seconds by name, and the names of the kernels alone, launch by launch.
    """
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler, torch.no_grad():
        call()
        torch.cuda.synchronize(device)
    events = [event for event in profiler.events() or () if event.device_type.name == "CUDA"]
    events.sort(key=lambda event: event.time_range.start)
    launches: dict[str, int] = {}
    seconds: dict[str, float] = {}
    for event in events:
        launches[event.name] = launches.get(event.name, 0) + 1
        spent = event.time_range.elapsed_us() * 1e-6
        seconds[event.name] = seconds.get(event.name, 0.0) + spent
    times = tuple(KernelTime(name, launches[name], seconds[name]) for name in launches)
    return times, tuple(event.name for event in events if not event.name.startswith(_COPIES))


@functools.cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")  # which torch has loaded
