"""From what a candidate's process counted to a verdict's counters.

The values come from a process that the candidate shares, and are as good as its word. Here they are
held against what can be true at all: a value that cannot be is left out, and the record says so.
No outcome rests on them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping

import torch

from kernelgym.judge import protocol
from kernelgym.judge.check import Placed
from kernelgym.judge.counter_plans import PlanFailed, stored_plan
from kernelgym.judge.cupti import find_cupti
from kernelgym.judge.device import gpu_facts
from kernelgym.judge.metrics import ALTERNATIVES, counter_values
from kernelgym.judge.physics import SECTOR_BYTES, DeviceModel
from kernelgym.judge.process import CandidateProcess
from kernelgym.judge.range_profiler import CounterPlan
from kernelgym.judge.verdict import Counters, KernelCounters
from kernelgym.toolchain.cache import ContentCache

__all__ = ["count_in_candidate", "with_hardware_counters"]

# Rounding and sampling take a share of a peak rate a little beyond it.
_MOST_PERCENT = 110.0
_MAX_NOTE = 300
_FORBIDDEN = "ERR_NVGPUCTRPERM"
_MOST_COUNT = 1e18
_MOST_SECTORS = 32  # a warp's lanes, each of which reaches one at a time
_RATES = frozenset(name for name, metrics in ALTERNATIVES.items() if ".pct" in metrics[0])
# Boosted memory clocks and the time's own resolution.
_SLACK = 1.1


def count_in_candidate(
    candidate: CandidateProcess,
    placed: Placed,
    seed: int,
    device: torch.device,
    cache: ContentCache,
) -> tuple[protocol.Counted, CounterPlan] | str:
    """Has a candidate run once more with counters on; nothing that it did depends on them.

    Args:
        candidate: Has run before; whatever it does now, its verdict stands.
        placed: The inputs of the call.
        seed: Of the call.
        device: The GPU.
        cache: Keeps plans.

    Returns:
        What it counted, or why nothing was. A candidate that dies of it has its verdict already.
    """
    library = find_cupti()
    if library is None:
        return "CUPTI is not there: pip install nvidia-cuda-cupti"
    facts = gpu_facts(device)
    gpu, capability = f"{facts.name} {facts.driver}", torch.cuda.get_device_capability(device)
    try:
        plan = stored_plan(cache, library, gpu, capability, device.index or 0)
    except PlanFailed as error:
        return f"no hardware counters: {error}"
    command = protocol.Count(placed.arguments, seed, plan)
    try:
        answer = candidate.ask(command, protocol.Counted)
    except protocol.CandidateTimeout:
        return "no hardware counters: the candidate's time was over"
    except protocol.CandidateGone:
        return f"no hardware counters: {candidate.death()} while counting"
    if isinstance(answer, protocol.Failed):
        remedy = "; kernelgym doctor tells what allows them" if _FORBIDDEN in answer.message else ""
        return f"no hardware counters: {answer.message[:_MAX_NOTE]}{remedy}"
    return answer, plan


def with_hardware_counters(
    counters: Counters,
    counted: protocol.Counted,
    plan: CounterPlan,
    model: DeviceModel | None,
) -> Counters:
    """Adds hardware counters to times and launches.

    Args:
        counters: Of the same call, as `split_by_owner` gives them.
        counted: What the candidate's process says.
        plan: What was asked for.
        model: The GPU's rates, where known.

    Returns:
        The same rows with values, or the same record with a note when nothing was counted.
    """
    launches: dict[str, list[Mapping[str, float]]] = {}
    left_out = 0
    for one in counted.launches:
        if len(one.values) != len(plan.names):
            left_out += 1
            continue
        said = {n: v for n, v in zip(plan.names, one.values, strict=True) if v is not None}
        believed = _believable(said, model)
        left_out += len(said) - len(believed)
        launches.setdefault(one.name, []).append(believed)
    every = [launch for group in launches.values() for launch in group]
    if not every:
        return dataclasses.replace(counters, note="the profiler counted no kernel")
    notes = [f"{plan.passes} passes"]
    if left_out:
        notes.append(f"{left_out} values that cannot be true were left out")
    rows = tuple(_filled(row, launches.get(row.name, ())) for row in counters.kernels)
    whole = all(
        len(launches.get(row.name, ())) == row.launches
        for row in rows
        if not row.name.startswith("Mem")
    )
    return Counters(
        source="cupti",
        total=_filled(counters.total, every),
        kernels=rows,
        sampled=not (counted.complete and whole),
        note="; ".join(notes),
    )


def _filled(row: KernelCounters, launches: Iterable[Mapping[str, float]]) -> KernelCounters:
    return dataclasses.replace(row, values=counter_values(list(launches))[1])


def _believable(said: Mapping[str, float], model: DeviceModel | None) -> dict[str, float]:
    """What can be true of one launch."""
    values = {
        name: value
        for name, value in said.items()
        if 0.0 <= value <= (_MOST_PERCENT if name in _RATES else _MOST_COUNT)
        and math.isfinite(value)
    }
    for kind in ("load", "store"):
        requests, sectors = (values.get(f"{kind}_{what}", 0.0) for what in ("requests", "sectors"))
        if sectors > _MOST_SECTORS * requests * _SLACK:
            _drop(values, f"{kind}_requests", f"{kind}_sectors")
    moved = values.get("dram_bytes_read", 0.0) + values.get("dram_bytes_written", 0.0)
    if model is not None and moved > SECTOR_BYTES:
        seconds = values.get("time", 0.0) * 1e-9
        if moved > _SLACK * model.dram_bandwidth * seconds:
            _drop(values, "dram_bytes_read", "dram_bytes_written", "dram_throughput")
    return values


def _drop(values: dict[str, float], *names: str) -> None:
    for name in names:
        values.pop(name, None)
