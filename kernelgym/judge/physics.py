"""What hardware can do: peak rates, the least time a task can take, and the roofline model.

On the emulator there is no clock worth reading, so times are *modelled* from counts by the
functions here; the same formulas, with a real GPU's rates, bound what a measured time may be.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

__all__ = ["EMULATED_DEVICE", "DeviceModel", "kernel_seconds", "light_seconds", "operator_seconds"]

SECTOR_BYTES = 32


@dataclasses.dataclass(frozen=True)
class DeviceModel:
    """Rates of a device, per second.

    Attributes:
        name: What it is called.
        dram_bandwidth: Bytes per second of device memory.
        l2_bandwidth: Bytes per second between L2 and the multiprocessors.
        fp32_rate: fp32 FLOP per second outside tensor cores.
        multiprocessors: Number of multiprocessors.
        clock: Cycles per second.
        launch_seconds: From one kernel's end to the next one's start.
        lsu_per_cycle: Warp-wide load or store requests that a multiprocessor issues per cycle.
        atomic_rate: Atomic operations per second on distinct addresses, whole device.
        atomic_latency: Seconds between two atomic operations on one address.
        barrier_cycles: Cycles that a block-wide barrier costs its block.
        memory_latency: Seconds from a request to global memory to its answer.
        requests_in_flight: Requests that one warp can have under way.
        resident_warps: Warps that a multiprocessor runs at a time.
        tf32_rate: FLOP per second of dense products in tensor cores, operands in TF32; 0 without.
        fp16_rate: The same in fp16; in bf16, where there is bf16.
        fp8_rate: The same in 8 bits.
        fp64_rate: fp64 FLOP per second, by whichever unit is faster; 0 where not known.
        l2_bytes: Size of L2; 0 where not known.
    """

    name: str
    dram_bandwidth: float
    l2_bandwidth: float
    fp32_rate: float
    multiprocessors: int
    clock: float
    launch_seconds: float
    lsu_per_cycle: float = 1.0
    atomic_rate: float = 2e10
    atomic_latency: float = 2e-9
    barrier_cycles: float = 30.0
    memory_latency: float = 4e-7
    requests_in_flight: float = 8.0
    resident_warps: int = 64
    tf32_rate: float = 0.0
    fp16_rate: float = 0.0
    fp8_rate: float = 0.0
    fp64_rate: float = 0.0
    l2_bytes: int = 0


# A small imaginary GPU. Its memory is slow beside its launch cost, so that at the `small` sizes,
# which a laptop can emulate, memory traffic decides as it does at full size on a real GPU.
EMULATED_DEVICE = DeviceModel(
    name="emulator",
    dram_bandwidth=40e9,
    l2_bandwidth=120e9,
    fp32_rate=1e12,
    multiprocessors=4,
    clock=1e9,
    launch_seconds=2e-7,
    atomic_rate=1e9,
)


def light_seconds(device: DeviceModel, flops: float, nbytes: float) -> float:
    """The least time physics allows: each byte moved once, each FLOP at the peak rate."""
    return max(nbytes / device.dram_bandwidth, flops / device.fp32_rate)


def operator_seconds(device: DeviceModel, flops: float, nbytes: float) -> float:
    """Modelled time of one library operator: a launch and the roofline."""
    return device.launch_seconds + light_seconds(device, flops, nbytes)


def kernel_seconds(device: DeviceModel, blocks: int, counts: Mapping[str, float]) -> float:
    """Modelled time of one launch of a candidate's kernel, from the emulator's counts.

    The slowest of: compulsory DRAM traffic, sectors through L2, issue of memory requests (shared
    memory with its bank conflicts included), atomics, and barriers; a grid with fewer blocks than
    multiprocessors uses only as many of those, and few warps wait for memory one request after
    another. Arithmetic is not counted by the emulator, so a
    kernel bound by arithmetic alone is modelled too fast; loads per FLOP stand in for it.

    Args:
        device: Whose rates.
        blocks: Blocks in the grid.
        counts: `dram_bytes_read`, `dram_bytes_written`, `sectors`, `requests`,
            `shared_wavefronts`, `warps`, `atomics`, `atomic_serialisations` and `barriers` of the launch.

    Returns:
        Seconds, the launch included.
    """

    def count(name: str) -> float:
        return float(counts.get(name, 0.0))

    used = min(max(blocks, 1), device.multiprocessors) / device.multiprocessors
    dram = (count("dram_bytes_read") + count("dram_bytes_written")) / device.dram_bandwidth
    through_l2 = count("sectors") * SECTOR_BYTES / device.l2_bandwidth
    issue_rate = device.multiprocessors * device.clock * device.lsu_per_cycle
    issue = (count("requests") + count("shared_wavefronts")) / issue_rate
    barriers = count("barriers") * device.barrier_cycles / (device.clock * device.multiprocessors)
    # Operations on one address go one after another, each waiting for the one before.
    atomics = count("atomics") / device.atomic_rate + count("atomic_serialisations") * (
        device.atomic_latency / device.multiprocessors
    )
    slowest = max(dram, through_l2, issue, barriers, atomics) / used
    # A warp has few requests under way at a time: too few warps cannot hide memory's latency.
    warps = count("warps")
    waves = -(-warps // (device.multiprocessors * device.resident_warps))
    waits = count("requests") / warps * waves if warps else 0.0
    latency = waits * device.memory_latency / device.requests_in_flight
    return device.launch_seconds + max(slowest, latency)
