"""One call on a GPU, timed by events or watched by the profiler; used on both sides."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from kernelgym.judge.protocol import KernelTime

__all__ = ["profiled_call", "timed_call"]

# A fifth of a millisecond at 2 GHz: some times what a Python forward takes to launch a kernel.
_LEAD_CYCLES = 400_000
_COPIES = ("Memcpy ", "Memset ")


def timed_call(
    call: Callable[[], Any], device: torch.device, flush_bytes: int
) -> tuple[Any, float, float]:
    """Calls once between two events of the current stream, with nothing of use left in L2.

    The GPU waits, then writes the flush, so that the host is ahead by the time the call's first
    kernel can start: what a launch costs the host is not counted, unless it takes longer than that.

    Args:
        call: What to time.
        device: The GPU.
        flush_bytes: How much to write beforehand: some times the size of L2.

    Returns:
        What the call returned, device seconds between the events, and host seconds until the call
        returned (kernels may still run then).
    """
    flush = torch.empty(flush_bytes, dtype=torch.int8, device=device)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize(device)
    with torch.no_grad():
        torch.cuda._sleep(_LEAD_CYCLES)
        flush.zero_()
        start.record()
        began = time.perf_counter()
        result = call()
        host_seconds = time.perf_counter() - began
        end.record()
    torch.cuda.synchronize(device)
    return result, start.elapsed_time(end) * 1e-3, host_seconds


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
