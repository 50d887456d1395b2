"""Measures what a GPU can do at most: bandwidths, rates of products, launches, clocks."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import torch

from kernelgym.judge.calibration import Ceilings
from kernelgym.judge.device import arithmetic
from kernelgym.judge.nvml import Clocks

__all__ = ["as_table", "measure_ceilings"]

_REPEATS = 7
_STREAM_BYTES = 4 * 2**30
_MATRIX = 8192
_KERNELS_IN_GRAPH = 100
_LAUNCHES = 200
_LONG_LEAD_CYCLES = 8_000_000
_LOAD_SECONDS = 0.05

Call = Callable[[], Any]
Timed = Callable[[Call], float]


def measure_ceilings(
    device: torch.device, l2_bytes: int, seconds_of: Timed, clocks: Clocks | None
) -> tuple[Ceilings, tuple[str, ...]]:
    """Runs torch's own operators on a GPU that has nothing else to do; takes some seconds.

    Args:
        device: The GPU.
        l2_bytes: Size of its L2.
        seconds_of: Makes one call and gives its device seconds.
        clocks: Its clocks, where NVML tells.

    Returns:
        What was found, and what could not be measured and why.
    """
    found: dict[str, float] = {}
    problems: list[str] = []

    def attempt(part: Callable[[], dict[str, float]], name: str) -> None:
        try:
            found.update(part())
        except Exception as error:  # what one card or torch lacks hides nothing of the rest
            first = next(iter(str(error).splitlines()), "")
            problems.append(f"{name}: {type(error).__name__}: {first}"[:300])
        torch.cuda.empty_cache()

    attempt(functools.partial(_streams, device, seconds_of), "memory bandwidth")
    for name, dtype, precision in (
        ("fp32", torch.float32, "ieee"),
        ("tf32", torch.float32, "tf32"),
        ("fp16", torch.float16, "default"),
        ("bf16", torch.bfloat16, "default"),
        ("fp64", torch.float64, "default"),
    ):
        attempt(functools.partial(_product, name, dtype, precision, device, seconds_of), name)
    attempt(functools.partial(_eight_bit_product, device, seconds_of), "fp8")
    attempt(functools.partial(_cache, device, l2_bytes, seconds_of), "L2 bandwidth")
    attempt(functools.partial(_launches, device), "launches")
    if clocks is not None:
        attempt(functools.partial(_clocks, device, clocks), "clocks")
    digits = {name: float(f"{value:.5g}") for name, value in found.items()}
    return Ceilings(**digits), tuple(problems)


def as_table(ceilings: Ceilings) -> list[tuple[str, str]]:
    """What was measured, for a reader: (name, value with its unit)."""
    rows = []
    for field in dataclasses.fields(ceilings):
        value = getattr(ceilings, field.name)
        if value is None:
            continue
        if field.name.startswith(("dram", "l2")):
            rows.append((field.name, f"{value / 1e9:.0f} GB/s"))
        elif field.name.endswith("seconds"):
            rows.append((field.name, f"{value * 1e6:.2f} us"))
        elif "mhz" in field.name:
            rows.append((field.name, f"{value:.0f} MHz"))
        else:
            rows.append((field.name, f"{value / 1e12:.1f} TFLOP/s"))
    return rows


def _best(calls: Sequence[Call], seconds_of: Timed) -> float:
    """The median seconds of the fastest of some calls."""
    medians = []
    for call in calls:
        call()
        medians.append(median(seconds_of(call) for _ in range(_REPEATS)))
    return min(medians)


def _streams(device: torch.device, seconds_of: Timed) -> dict[str, float]:
    free = torch.cuda.mem_get_info(device)[0]
    nbytes = min(_STREAM_BYTES, free // 4)
    x = torch.rand(nbytes // 4, device=device)
    y = torch.empty_like(x)
    reads: list[Call] = [x.sum, x.amax, functools.partial(torch.linalg.vector_norm, x)]
    writes: list[Call] = [y.zero_, functools.partial(y.fill_, 1.0)]
    copies: list[Call] = [
        functools.partial(y.copy_, x),
        functools.partial(torch.mul, x, 2.0, out=y),
    ]
    moved = x.numel() * 4
    return {
        "dram_read": moved / _best(reads, seconds_of),
        "dram_write": moved / _best(writes, seconds_of),
        "dram_copy": 2 * moved / _best(copies, seconds_of),
    }


def _product(
    name: str, dtype: torch.dtype, precision: str, device: torch.device, seconds_of: Timed
) -> dict[str, float]:
    a, b = (torch.randn(_MATRIX, _MATRIX, device=device).to(dtype) for _ in range(2))
    out = torch.empty(_MATRIX, _MATRIX, dtype=dtype, device=device)
    with arithmetic(precision):
        seconds = _best([functools.partial(torch.mm, a, b, out=out)], seconds_of)
    return {name: 2 * _MATRIX**3 / seconds}


def _eight_bit_product(device: torch.device, seconds_of: Timed) -> dict[str, float]:
    kind = torch.float8_e4m3fn
    a = torch.randn(_MATRIX, _MATRIX, device=device).to(kind)
    b = torch.randn(_MATRIX, _MATRIX, device=device).to(kind).t()  # its columns lie in a row
    one = torch.ones((), device=device)
    product = functools.partial(
        torch._scaled_mm, a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16
    )
    return {"fp8": 2 * _MATRIX**3 / _best([product], seconds_of)}


def _cache(device: torch.device, l2_bytes: int, seconds_of: Timed) -> dict[str, float]:
    """From two sizes that both fit: what a kernel takes besides falls out of the difference."""
    small, large = l2_bytes // 8, l2_bytes // 4
    seconds = []
    for nbytes in (small, large):
        x = torch.zeros(nbytes // 4, device=device)
        y = torch.zeros_like(x)
        torch.add(x, 1.0, out=y)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(_KERNELS_IN_GRAPH):
                torch.add(x, 1.0, out=y)
        seconds.append(_best([graph.replay], seconds_of) / _KERNELS_IN_GRAPH)
    if seconds[1] <= seconds[0]:
        raise RuntimeError(f"twice the bytes took {seconds[1]:.3g} s after {seconds[0]:.3g} s")
    return {"l2_bandwidth": 2 * (large - small) / (seconds[1] - seconds[0])}


def _launches(device: torch.device) -> dict[str, float]:
    x = torch.zeros(1, device=device)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    found = []
    for _ in range(_REPEATS):
        torch.cuda.synchronize(device)
        torch.cuda._sleep(_LONG_LEAD_CYCLES)  # the host is done with all launches by its end
        start.record()
        for _ in range(_LAUNCHES):
            x.add_(1.0)
        end.record()
        torch.cuda.synchronize(device)
        found.append(start.elapsed_time(end) * 1e-3 / _LAUNCHES)
    return {"launch_seconds": median(found)}


def _clocks(device: torch.device, clocks: Clocks) -> dict[str, float]:
    a = torch.randn(_MATRIX, _MATRIX, device=device).half()
    until = time.monotonic() + _LOAD_SECONDS
    readings = []
    while time.monotonic() < until:
        for _ in range(10):
            torch.mm(a, a)
        readings.append(clocks.multiprocessor_mhz())
        torch.cuda.synchronize(device)
    return {
        "sm_mhz": median(readings),
        "sm_mhz_highest": clocks.highest_mhz(),
        "memory_mhz": clocks.memory_mhz(),
    }
