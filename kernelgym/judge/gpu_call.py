"""One call on a GPU, timed by events or watched by the profiler; used on both sides."""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable
from typing import Any

import torch

from kernelgym.judge.protocol import KernelTime

__all__ = ["CacheFlush", "profiled_call", "timed_call"]

# A tenth of a millisecond at 2 GHz: with the flush, some times what a forward takes to launch.
_LEAD_CYCLES = 200_000


class CacheFlush:
    """Leaves nothing of use in L2; its memory is taken on first use and kept.

    Half of it is written, then the other half read: the write-backs of the first are over when the
    second has been read. Lines that a program has had set aside for itself (a persisting access
    window) would survive both, so the driver is first told to make them ordinary ones.

    Args:
        device: The GPU.
        nbytes: How much is written and read: some times the size of L2.
    """

    def __init__(self, device: torch.device, nbytes: int) -> None:
        self._device = device
        self.nbytes = nbytes

    def __call__(self) -> None:
        """Queues the flush on the current stream."""
        _reset_persisting_lines()
        written, read, total = self._memory
        written.zero_()
        torch.sum(read, dim=0, out=total)

    @functools.cached_property
    def _memory(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        count = max(self.nbytes // 8, 1)  # two halves of 4-byte numbers
        written = torch.empty(count, dtype=torch.float32, device=self._device)
        read = torch.zeros(count, dtype=torch.float32, device=self._device)
        return written, read, torch.zeros((), dtype=torch.float32, device=self._device)


def timed_call(
    call: Callable[[], Any], device: torch.device, flush: CacheFlush
) -> tuple[Any, float, float]:
    """Calls once between two events of the current stream, with nothing of use left in L2.

    The GPU waits, then flushes, so that the host is ahead by the time the call's first kernel can
    start: what a launch costs the host is not counted, unless it takes longer than that.

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
        torch.cuda._sleep(_LEAD_CYCLES)
        flush()
        start.record()
        began = time.perf_counter()
        result = call()
        host_seconds = time.perf_counter() - began
        end.record()
    torch.cuda.synchronize(device)
    return result, start.elapsed_time(end) * 1e-3, host_seconds


def profiled_call(call: Callable[[], Any], device: torch.device) -> tuple[KernelTime, ...]:
    """Calls once under torch's profiler (CUPTI's activities) and lists what ran on the GPU.

    A kernel runs slower while it is watched, so nothing is timed here for a verdict.
    """
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler, torch.no_grad():
        call()
        torch.cuda.synchronize(device)
    launches: dict[str, int] = {}
    seconds: dict[str, float] = {}
    for event in profiler.events() or ():
        if event.device_type.name == "CUDA":
            launches[event.name] = launches.get(event.name, 0) + 1
            spent = event.time_range.elapsed_us() * 1e-6
            seconds[event.name] = seconds.get(event.name, 0.0) + spent
    return tuple(KernelTime(name, launches[name], seconds[name]) for name in launches)


def _reset_persisting_lines() -> None:
    # A card without such lines refuses, and needs none of it.
    ctypes.CDLL("libcuda.so.1").cuCtxResetPersistingL2Cache()
