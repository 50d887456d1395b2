"""From the emulator's counts to a verdict's counters and modelled time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from kernelgym.judge.physics import DeviceModel, kernel_seconds, operator_seconds
from kernelgym.judge.protocol import Operator
from kernelgym.judge.verdict import Counters, Coverage, KernelCounters
from kernelgym.toolchain.emulator_report import Launch

__all__ = ["emulated_counters"]

# A verdict's counters, as sums of the emulator's counts.
_SUMS: Mapping[str, tuple[str, ...]] = {
    "dram_bytes_read": ("dram_read_bytes",),
    "dram_bytes_written": ("dram_write_bytes",),
    "requests": ("global_load_requests", "global_store_requests", "global_atomic_requests"),
    "sectors": ("global_load_sectors", "global_store_sectors", "global_atomic_sectors"),
    "requested_bytes": ("global_load_bytes", "global_store_bytes"),
    "shared_requests": ("shared_load_requests", "shared_store_requests"),
    "shared_wavefronts": ("shared_load_wavefronts", "shared_store_wavefronts"),
    "bank_conflicts": ("shared_load_conflicts", "shared_store_conflicts"),
    "atomics": ("global_atomics", "shared_atomics"),
    "atomic_serialisations": ("atomic_serialisations",),
    "barriers": ("barriers",),
    "warps": ("warps",),
    "divergent_warps": ("divergent_warps",),
}


def emulated_counters(
    device: DeviceModel, launches: Sequence[Launch], operators: Sequence[Operator]
) -> tuple[Counters, Coverage]:
    """Counters of one call: the candidate's launches, and the torch operators beside them.

    Args:
        device: Rates of the modelled device.
        launches: What the emulator counted.
        operators: Torch operators that ran in the same call; each is a foreign launch.

    Returns:
        Counters (their total's `time` is the modelled time of the call), and the split by owner.
    """
    groups: dict[tuple[str, str], list[Launch]] = {}
    for launch in launches:
        groups.setdefault((launch.owner, launch.kernel), []).append(launch)
    rows = [
        _row(name, owner, [_launch_seconds(device, launch) for launch in members], members)
        for (owner, name), members in groups.items()
    ]
    foreign: dict[str, list[Operator]] = {}
    for operator in operators:
        # Creating an uninitialised tensor launches nothing.
        if operator.kind != "own" and not (operator.kind == "create" and "empty" in operator.name):
            foreign.setdefault(operator.name, []).append(operator)
    for name, calls in foreign.items():
        time = sum(operator_seconds(device, call.flops, call.bytes) for call in calls)
        values = (("requested_bytes", float(sum(call.bytes for call in calls))),)
        rows.append(KernelCounters(name, "foreign", len(calls), time, 0.0, values))
    total_time = math.fsum(row.time for row in rows)
    shared = [_with_share(row, total_time) for row in rows]
    by_owner = {
        owner: math.fsum(row.share for row in shared if row.owner == owner)
        for owner in ("own", "library", "foreign")
    }
    total = KernelCounters(
        "total",
        "all",
        sum(row.launches for row in rows),
        total_time,
        1.0 if rows else 0.0,
        _values(launches),
    )
    sampled = any(launch.sampled for launch in launches)
    return Counters("emulated", total, tuple(shared), sampled), Coverage(**by_owner)


def _launch_seconds(device: DeviceModel, launch: Launch) -> float:
    counts = _sums([launch])
    if launch.owner == "library":
        nbytes = counts["dram_bytes_read"] + counts["dram_bytes_written"]
        seconds = operator_seconds(device, launch.flops * launch.repeats, nbytes)
    else:
        seconds = kernel_seconds(device, math.prod(launch.grid), counts)
    return seconds + (launch.repeats - 1) * device.launch_seconds


def _row(
    name: str, owner: str, times: Sequence[float], launches: Sequence[Launch]
) -> KernelCounters:
    return KernelCounters(
        name,
        owner,
        sum(launch.repeats for launch in launches),
        math.fsum(times),
        0.0,
        _values(launches),
    )


def _sums(launches: Sequence[Launch]) -> dict[str, float]:
    return {
        name: float(sum(launch.counts.get(part, 0) for launch in launches for part in parts))
        for name, parts in _SUMS.items()
    }


def _values(launches: Sequence[Launch]) -> tuple[tuple[str, float], ...]:
    sums = _sums(launches)
    values: Mapping[str, float] = {
        **sums,
        "sectors_per_request": _ratio(sums["sectors"], sums["requests"]),
        "bank_conflicts_per_request": _ratio(sums["bank_conflicts"], sums["shared_requests"]),
        "useful_byte_share": min(_ratio(sums["requested_bytes"], 32 * sums["sectors"]), 1.0),
    }
    return tuple(values.items())


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else 0.0


def _with_share(row: KernelCounters, total: float) -> KernelCounters:
    share = row.time / total if total else 0.0
    return KernelCounters(row.name, row.owner, row.launches, row.time, share, row.values)
