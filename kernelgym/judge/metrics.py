"""Which hardware metrics are counted, and how a verdict's counters come from them.

Sums are counted wherever there are sums, for only sums can be added over launches; ratios are
computed from them. What has no sum (a share of a peak rate) is averaged over launches, weighted by
their time. The set is chosen so that it needs few passes over a kernel: 7 on GH100.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

__all__ = ["ALTERNATIVES", "METRICS", "SHARES", "STALLS", "counter_values", "top_stall"]

_OF_PEAK = "avg.pct_of_peak_sustained_elapsed"

STALLS: Mapping[str, str] = {
    "long_scoreboard": "waits for global or local memory",
    "short_scoreboard": "waits for shared memory or a special function",
    "barrier": "waits at a barrier",
    "wait": "waits for the fixed latency of the instruction before",
    "math_pipe_throttle": "waits for an arithmetic unit",
    "lg_throttle": "waits for room in the queue of global and local memory",
    "mio_throttle": "waits for room in the queue of shared memory",
    "gmma": "waits for a warpgroup's tensor instruction",
    "membar": "waits at a memory fence",
}
"""Why a warp could not issue, by CUPTI's names, and what that means."""

ALTERNATIVES: Mapping[str, tuple[str, ...]] = {
    "time": ("gpu__time_duration.sum",),
    "dram_bytes_read": ("dram__bytes_read.sum", "fbpa__dram_read_bytes.sum"),
    "dram_bytes_written": ("dram__bytes_write.sum", "fbpa__dram_write_bytes.sum"),
    "occupancy": ("sm__warps_active.avg.pct_of_peak_sustained_active",),
    "instructions": ("smsp__inst_executed.sum",),
    "thread_instructions": ("smsp__thread_inst_executed.sum",),
    "warps": ("smsp__warps_launched.sum",),
    "warp_cycles": ("smsp__warps_active.sum",),
    "l2_hits": ("lts__t_sectors_lookup_hit.sum",),
    "l2_misses": ("lts__t_sectors_lookup_miss.sum",),
    "load_requests": ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",),
    "load_sectors": ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",),
    "store_requests": ("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",),
    "store_sectors": ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",),
    "shared_loads": ("smsp__inst_executed_op_shared_ld.sum",),
    "shared_stores": ("smsp__inst_executed_op_shared_st.sum",),
    "shared_wavefronts": ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",),
    "bank_conflicts": ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",),
    "tensor_activity": (f"sm__pipe_tensor_cycles_active.{_OF_PEAK}",),
    "dram_throughput": (f"dram__throughput.{_OF_PEAK}",),
    "l2_throughput": (f"lts__t_sectors.{_OF_PEAK}",),
    "l1_throughput": (f"l1tex__data_pipe_lsu_wavefronts.{_OF_PEAK}",),
    "issue": (f"sm__inst_issued.{_OF_PEAK}",),
    "alu": (f"sm__pipe_alu_cycles_active.{_OF_PEAK}",),
    "fma": (f"sm__pipe_fma_cycles_active.{_OF_PEAK}",),
    "fp64": (f"sm__pipe_fp64_cycles_active.{_OF_PEAK}",),
    "xu": (f"sm__inst_executed_pipe_xu.{_OF_PEAK}",),
    **{f"stall_{name}": (f"smsp__warps_issue_stalled_{name}.sum",) for name in STALLS},
}
"""CUPTI's metrics that a value can be read from; the first that a chip has is taken."""

METRICS = tuple(ALTERNATIVES)
"""Short names of what is counted."""

SHARES = frozenset(
    {
        "sm_throughput",
        "memory_throughput",
        "dram_throughput",
        "occupancy",
        "tensor_activity",
        "l2_hit_rate",
    }
)
"""Counters of a verdict that are shares, 0 to 1; so is every `stall_…`."""

_UNITS = ("issue", "alu", "fma", "fp64", "xu", "tensor_activity")
_MEMORIES = ("dram_throughput", "l2_throughput", "l1_throughput")
_NANOSECONDS = 1e-9


def counter_values(
    launches: Sequence[Mapping[str, float]],
) -> tuple[float, tuple[tuple[str, float], ...]]:
    """A verdict's counters of some launches together.

    Args:
        launches: Values by short name, of each launch; what a chip lacks is missing in all.

    Returns:
        Device seconds (with the counters running, so longer than without), and (name, value) pairs
        as `docs/judge.md` lists them; what cannot be said is left out.
    """
    if not launches:
        return 0.0, ()
    known = set.intersection(*(set(launch) for launch in launches))
    weights = [launch.get("time", 1.0) for launch in launches]

    def total(*names: str) -> float | None:
        if not known.issuperset(names):
            return None
        return math.fsum(launch[name] for name in names for launch in launches)

    def mean(percent: Iterable[float]) -> float | None:
        whole = math.fsum(weights)
        if not whole > 0.0:
            return None
        parts = (value * weight for value, weight in zip(percent, weights, strict=True))
        return min(math.fsum(parts) / whole / 100.0, 1.0)

    def share(name: str) -> float | None:
        return mean(launch[name] for launch in launches) if name in known else None

    def busiest(names: Iterable[str]) -> float | None:
        present = [name for name in names if name in known]
        if not present:
            return None
        return mean(max(launch[name] for name in present) for launch in launches)

    requests, sectors = (total(f"load_{what}", f"store_{what}") for what in ("requests", "sectors"))
    shared = total("shared_loads", "shared_stores")
    conflicts = total("bank_conflicts")
    hits, misses = total("l2_hits"), total("l2_misses")
    warp_cycles = total("warp_cycles")
    values: dict[str, float | None] = {
        "dram_bytes_read": total("dram_bytes_read"),
        "dram_bytes_written": total("dram_bytes_written"),
        "sm_throughput": busiest(_UNITS),
        "memory_throughput": busiest(_MEMORIES),
        "dram_throughput": share("dram_throughput"),
        "occupancy": share("occupancy"),
        "tensor_activity": share("tensor_activity"),
        "instructions": total("instructions"),
        "threads_per_instruction": _ratio(total("thread_instructions"), total("instructions")),
        "warps": total("warps"),
        "l2_hit_rate": _ratio(hits, None if hits is None or misses is None else hits + misses),
        "requests": requests,
        "sectors": sectors,
        "sectors_per_request": _ratio(sectors, requests),
        "load_sectors_per_request": _ratio(total("load_sectors"), total("load_requests")),
        "store_sectors_per_request": _ratio(total("store_sectors"), total("store_requests")),
        "shared_requests": shared,
        "shared_wavefronts": total("shared_wavefronts"),
        "bank_conflicts": conflicts,
        "bank_conflicts_per_request": _ratio(conflicts, shared),
        **{f"stall_{name}": _ratio(total(f"stall_{name}"), warp_cycles) for name in STALLS},
    }
    seconds = (total("time") or 0.0) * _NANOSECONDS
    return seconds, tuple((name, value) for name, value in values.items() if value is not None)


def top_stall(values: Mapping[str, float]) -> tuple[str, float] | None:
    """The reason for which warps waited longest, and its share of the time that warps were there.

    Args:
        values: A kernel's counters.

    Returns:
        None where no stall was counted.
    """
    stalls = [(values.get(f"stall_{name}", 0.0), name) for name in STALLS]
    share, name = max(stalls)
    return (name, share) if share > 0.0 else None


def _ratio(numerator: float | None, denominator: float | None) -> float | None:
    if numerator is None or denominator is None:
        return None
    return numerator / denominator if denominator else 0.0
