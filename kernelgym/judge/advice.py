"""What bounds a kernel, and what to do next: rules over a verdict's times, counters and machine code.

Each rule speaks only where what it rests on was measured (or, on the emulator, modelled); a counter
that is missing silences its rules. Each estimates the share of the time that could be won, and
those with most to win are shown. The estimates order the steps, and promise nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from kernelgym.judge.physics import DeviceModel
from kernelgym.judge.verdict import KernelCounters, KernelResources, Verdict

__all__ = ["Advice", "Step", "advise", "top_stall"]

_STEPS = 3
_NEAR_PEAK = 0.85
_FEW_WARPS = 8  # a multiprocessor's four schedulers want two each, at the least
_COALESCED_SECTORS = 4.0  # 32 lanes of 4 bytes each
_WIDE_SECTORS = 16.0  # 32 lanes of 16 bytes each
_SHARED_WITHOUT_ASKING = 48 * 1024

_STALLS = {
    "long_scoreboard": (
        "warps wait for global or local memory",
        "have more loads under way at a time: unroll, or let each thread work on several elements",
    ),
    "short_scoreboard": (
        "warps wait for shared memory or a special function",
        "reuse values in registers instead of reading shared memory again",
    ),
    "barrier": (
        "warps wait at barriers",
        "use fewer __syncthreads(): two buffers, larger tiles, or exchange within a warp by shuffles",
    ),
    "wait": (
        "warps wait for the instruction before",
        "give each thread independent work: several accumulators, an unrolled loop",
    ),
    "math_pipe_throttle": (
        "warps wait for an arithmetic unit",
        "do less arithmetic: cheaper functions (__expf, rsqrtf), or what tensor cores can do",
    ),
    "lg_throttle": (
        "the queue of global memory is full",
        "make fewer and wider accesses: float4 instead of four floats",
    ),
    "mio_throttle": (
        "the queue of shared memory is full",
        "make fewer and wider accesses to shared memory: float4, or registers",
    ),
    "gmma": ("warps wait for tensor instructions", "start the next product before using the last"),
    "membar": ("warps wait at memory fences", "use fewer __threadfence() and atomics"),
}


@dataclasses.dataclass(frozen=True)
class Step:
    """One thing to do.

    Attributes:
        text: What was seen, and what to do about it.
        gain: Estimated share of the time that it could win, 0 to 1.
    """

    text: str
    gain: float


@dataclasses.dataclass(frozen=True)
class Advice:
    """What a verdict says about where to go.

    Attributes:
        limit: What bounds the kernel now, in one sentence.
        steps: At most three things to do, best first.
        modelled: Whether it rests on the emulator's model rather than on measurements.
    """

    limit: str
    steps: tuple[Step, ...]
    modelled: bool


@dataclasses.dataclass(frozen=True)
class _Seen:
    """What the rules look at."""

    verdict: Verdict
    flops: int
    min_bytes: int
    model: DeviceModel | None
    seconds: float
    total: KernelCounters | None
    hottest: KernelCounters | None

    def value(self, name: str) -> float | None:
        """A counter: the hottest kernel's, or the sum's where it alone has it."""
        for row in (self.hottest, self.total):
            if row is not None and row.get(name) is not None:
                return row.get(name)
        return None

    @property
    def moved(self) -> float | None:
        """DRAM bytes of the call."""
        if self.total is None:
            return None
        parts = [self.total.get(f"dram_bytes_{way}") for way in ("read", "written")]
        return None if None in parts else sum(part for part in parts if part is not None)

    @property
    def bandwidth(self) -> float | None:
        """DRAM traffic as a share of the peak: counted, or bytes over time."""
        counted = self.value("dram_throughput")
        if counted is not None or self.moved is None or self.model is None:
            return counted
        return min(self.moved / self.seconds / self.model.dram_bandwidth, 1.0)

    @property
    def resources(self) -> KernelResources | None:
        """What the compiler gave the hottest kernel."""
        kernels = self.verdict.build.kernels if self.verdict.build is not None else ()
        name = self.hottest.name if self.hottest is not None else ""
        named = [kernel for kernel in kernels if kernel.name.split("<")[0] in name]
        return next(iter(named or kernels), None)

    @property
    def code(self) -> Any:
        """The summary of its machine code, where there is one."""
        summaries = getattr(self.verdict.build, "sass", ()) or ()
        name = self.hottest.name if self.hottest is not None else ""
        named = [one for one in summaries if one.name.split("<")[0] in name]
        return next(iter(named or summaries), None)


def advise(
    verdict: Verdict, *, flops: int, min_bytes: int, model: DeviceModel | None
) -> Advice | None:
    """What bounds the judged kernel, and up to three things to do next.

    Args:
        verdict: Of a correct candidate, with times.
        flops: Floating-point operations of the reference's products and convolutions.
        min_bytes: Bytes of inputs, parameters and outputs, once each.
        model: Rates of the device; None where they are not known.

    Returns:
        None where the verdict has no times.
    """
    if verdict.timing is None:
        return None
    rows = verdict.counters.kernels if verdict.counters is not None else ()
    own = [row for row in rows if row.owner == "own"] or [*rows]
    seen = _Seen(
        verdict=verdict,
        flops=flops,
        min_bytes=min_bytes,
        model=model,
        seconds=verdict.timing.candidate.median,
        total=verdict.counters.total if verdict.counters is not None else None,
        hottest=max(own, key=lambda row: row.time) if own else None,
    )
    steps = sorted(_steps(seen), key=lambda step: -step.gain)[:_STEPS]
    modelled = verdict.timing.candidate.source == "modelled"
    return Advice(_limit(seen), tuple(steps), modelled)


def top_stall(kernel: KernelCounters) -> tuple[str, float] | None:
    """Why a kernel's warps waited longest: what it means, and its share of their time.

    Returns:
        None where no stall was counted.
    """
    shares = [(kernel.get(f"stall_{name}") or 0.0, name) for name in _STALLS]
    share, name = max(shares)
    return (_STALLS[name][0], share) if share > 0.0 else None


# --- what bounds it -----------------------------------------------------------------------------


def _limit(seen: _Seen) -> str:
    host = _host_bound(seen)
    if host is not None:
        return f"the host: it takes {host:.2g} times as long to launch the work as the GPU to do it"
    bandwidth, moved = seen.bandwidth, seen.moved
    if bandwidth is not None and bandwidth >= _NEAR_PEAK:
        text = f"memory: DRAM runs at {bandwidth:.0%} of its peak"
        if moved is not None and moved <= 1.15 * seen.min_bytes:
            return f"{text} and moves no more than it must: a tie with physics, nothing can beat it"
        return text
    issue = seen.value("sm_throughput")
    if issue is not None and issue >= _NEAR_PEAK:
        return f"arithmetic: the multiprocessors run at {issue:.0%} of their peak"
    shares = [
        f"{name} at {share:.0%} of its peak"
        for name, share in (("DRAM", bandwidth), ("the multiprocessors", issue))
        if share is not None
    ]
    stall = top_stall(seen.hottest) if seen.hottest is not None else None
    if stall is not None:
        return f"latency: {stall[0]} ({stall[1]:.0%} of their time); {', '.join(shares)}".rstrip(
            "; "
        )
    if shares:
        return f"latency, or too little work at a time: {', '.join(shares)}"
    light = seen.verdict.timing.light_fraction if seen.verdict.timing is not None else None
    if light is not None:
        return f"unknown without counters; it runs at {light:.0%} of the speed of light"
    return "unknown: neither counters nor the device's rates are known"


def _host_bound(seen: _Seen) -> float | None:
    """Host time over device time, where the host is what takes longer."""
    assert seen.verdict.timing is not None
    host = seen.verdict.timing.candidate.host_span
    if host is None or host <= 1.2 * seen.seconds:
        return None
    return host / seen.seconds


# --- what to do ---------------------------------------------------------------------------------


def _steps(seen: _Seen) -> Iterator[Step]:
    yield from _about_the_call(seen)
    yield from _about_memory(seen)
    yield from _about_shared_memory(seen)
    yield from _about_parallelism(seen)
    yield from _about_arithmetic(seen)
    yield from _about_the_rest(seen)


def _about_the_call(seen: _Seen) -> Iterator[Step]:
    verdict = seen.verdict
    host = _host_bound(seen)
    launches = seen.total.launches if seen.total is not None else 0
    if host is not None:
        yield Step(
            f"Launch-bound: the host takes {host:.2g} times the GPU's time for {launches or 'its'} "
            "launches. Do the work in one kernel, and keep Python out of forward; or capture the "
            "calls in a CUDA graph.",
            1.0 - 1.0 / host,
        )
    if verdict.coverage is not None and verdict.coverage.foreign > 0.05:
        rows = verdict.counters.kernels if verdict.counters is not None else ()
        foreign = max((r for r in rows if r.owner == "foreign"), key=lambda r: r.time, default=None)
        named = f" (most in {foreign.name[:60]})" if foreign is not None else ""
        yield Step(
            f"{verdict.coverage.foreign:.0%} of the device time is in torch's own kernels{named}: "
            "fuse that work into yours.",
            verdict.coverage.foreign,
        )
    moved = seen.moved
    if moved is not None and moved > 1.3 * seen.min_bytes and launches > 1:
        yield Step(
            f"{launches} launches move {moved / seen.min_bytes:.1f} times the bytes of inputs and "
            "outputs: fuse kernels, so that what passes between them stays in registers.",
            (1.0 - seen.min_bytes / moved) * 0.9,
        )
    elif moved is not None and moved > 1.3 * seen.min_bytes:
        yield Step(
            f"It moves {moved / seen.min_bytes:.1f} times the bytes of inputs and outputs: read each "
            "input once and keep it in registers or shared memory while it is needed.",
            (1.0 - seen.min_bytes / moved) * 0.8,
        )


def _about_memory(seen: _Seen) -> Iterator[Step]:
    useful, sectors = seen.value("useful_byte_share"), seen.value("sectors_per_request")
    loads = seen.value("load_sectors_per_request") or sectors
    scattered = loads is not None and loads > _WIDE_SECTORS
    if sectors is not None and ((useful is not None and useful < 0.6) or scattered):
        per_request = loads if scattered and loads is not None else sectors
        waste = 1.0 - (useful if useful is not None else _COALESCED_SECTORS / per_request)
        yield Step(
            f"Uncoalesced: a warp's access touches {per_request:.1f} sectors of 32 bytes, where 4 "
            "hold a float for each lane. Let neighbouring threads take neighbouring elements; "
            "transpose through shared memory where the layout forbids it.",
            waste * 0.9,
        )
    code = seen.code
    narrow = code is not None and code.global_loads > 0 and code.global_loads_16 == 0
    near = seen.bandwidth is not None and seen.bandwidth >= _NEAR_PEAK
    if narrow and not near and not scattered:
        yield Step(
            f"None of its {code.global_loads} load instructions is 16 bytes wide: load float4 (or "
            "8 halves) where addresses are aligned, and handle the tail apart.",
            0.25 if seen.bandwidth is None else 0.5 * (1.0 - seen.bandwidth),
        )
    atomics, waits = seen.value("atomics"), seen.value("atomic_serialisations")
    if atomics and waits is not None and waits > atomics:
        yield Step(
            f"{waits:.3g} of {atomics:.3g} atomic operations wait for another on the same address: "
            "reduce within a warp (__shfl_down_sync) and a block first, then one atomic a block.",
            0.5,
        )
    if near and seen.moved is not None and seen.moved <= 1.15 * seen.min_bytes:
        yield Step(
            f"DRAM runs at {seen.bandwidth:.0%} of its peak and moves what it must: a tie. Only "
            "fewer bytes can win: fuse what comes before or after, or use a smaller type.",
            0.05,
        )


def _about_shared_memory(seen: _Seen) -> Iterator[Step]:
    conflicts = seen.value("bank_conflicts_per_request")
    if conflicts is not None and conflicts > 0.25:
        yield Step(
            f"Bank conflicts: {conflicts:.1f} extra passes for each access to shared memory. Pad a "
            "row by one element ([T][T + 1]), or swizzle the column index.",
            conflicts / (1.0 + conflicts) * 0.6,
        )


def _about_parallelism(seen: _Seen) -> Iterator[Step]:
    resources = seen.resources
    if resources is not None and resources.spill_store_bytes:
        yield Step(
            f"Registers spill ({resources.spill_store_bytes} bytes a thread go to local memory): "
            "smaller tiles, fewer unrolled iterations, or __launch_bounds__ with fewer blocks.",
            0.3,
        )
    elif seen.code is not None and seen.code.local_loads:
        yield Step(
            f"{seen.code.local_loads} loads from local memory: an array indexed at run time does not "
            "fit into registers; unroll its loops fully, or put it into shared memory.",
            0.25,
        )
    warps, model = seen.value("warps"), seen.model
    if warps is not None and model is not None and warps < _FEW_WARPS * model.multiprocessors:
        yield Step(
            f"Too little at a time: {warps:.0f} warps for {model.multiprocessors} multiprocessors. "
            "Use more blocks: split rows or the inner dimension, one output a thread.",
            0.6 * (1.0 - warps / (_FEW_WARPS * model.multiprocessors)),
        )
    occupancy = seen.value("occupancy")
    near = seen.bandwidth is not None and seen.bandwidth >= _NEAR_PEAK
    if occupancy is not None and occupancy < 0.5 and not near:
        yield Step(
            f"Occupancy is {occupancy:.0%}{_why_low(resources)}.",
            0.3 * (1.0 - occupancy),
        )
    active = seen.value("threads_per_instruction")
    divergent, all_warps = seen.value("divergent_warps"), seen.value("warps")
    if active is not None and active < 24.0:
        yield Step(
            f"Only {active:.0f} of 32 lanes are active on average: let a warp's lanes take one way "
            "(sort work by kind, or give each warp one row).",
            1.0 - active / 32.0,
        )
    elif divergent and all_warps and divergent > 0.25 * all_warps:
        yield Step(
            f"In {divergent / all_warps:.0%} of the warps lanes take different ways: make conditions "
            "uniform within a warp.",
            0.15,
        )


def _why_low(resources: KernelResources | None) -> str:
    if resources is None:
        return ": try smaller blocks, or fewer registers and less shared memory a block"
    if (resources.shared_bytes or 0) > _SHARED_WITHOUT_ASKING // 2:
        return f": {resources.shared_bytes} bytes of shared memory a block; use smaller tiles"
    if (resources.registers or 0) > 64:
        return f": {resources.registers} registers a thread; smaller tiles, or __launch_bounds__"
    return ": neither registers nor shared memory limit it; use more, or larger, blocks"


def _about_arithmetic(seen: _Seen) -> Iterator[Step]:
    model, precision = seen.model, seen.verdict.provenance.precision
    if model is None or not seen.flops:
        return
    of_peak = seen.flops / seen.seconds / model.fp32_rate
    heavy = seen.flops / model.fp32_rate > seen.min_bytes / model.dram_bandwidth
    tensor = seen.value("tensor_activity")
    code = seen.code
    idle = tensor < 0.05 if tensor is not None else code is not None and code.tensor == 0
    if heavy and idle and precision in ("tf32", "fp16", "bf16"):
        yield Step(
            f"Tensor cores are idle, and the precision class {precision} allows them: use wmma or "
            "mma instructions, or cuBLAS, for the products.",
            0.8,
        )
    elif heavy and of_peak < 0.5:
        yield Step(
            f"Products run at {of_peak:.0%} of the peak outside tensor cores: compute a tile of "
            "8 x 8 outputs a thread from registers, with operands staged in shared memory.",
            0.7 * (1.0 - of_peak),
        )


def _about_the_rest(seen: _Seen) -> Iterator[Step]:
    """Steps that always apply, for where no rule with more to win speaks up."""
    timing = seen.verdict.timing
    assert timing is not None
    if seen.hottest is not None:
        shares = [(seen.hottest.get(f"stall_{name}") or 0.0, name) for name in _STALLS]
        share, name = max(shares)
        if share > 0.2:
            seen_as, remedy = _STALLS[name]
            yield Step(f"{share:.0%} of the time {seen_as}: {remedy}.", 0.5 * share)
    if timing.speedup_compile is not None and timing.speedup_compile.high < 0.98:
        yield Step(
            f"torch.compile takes {timing.speedup_compile.value:.0%} of your time: look at what it "
            "fuses (TORCH_LOGS=output_code) and do as much in one kernel.",
            min(1.0 - timing.speedup_compile.value, 0.5),
        )
    launches = seen.total.launches if seen.total is not None else 0
    if launches > 1:
        yield Step(
            f"{launches} launches a call: every boundary between kernels costs a launch and a trip "
            "through memory; fuse two of them.",
            0.06,
        )
    yield Step(
        "Let each thread work on 2 to 4 independent elements, so that more loads are under way.",
        0.02,
    )
    yield Step("Time blocks of 128, 256 and 512 threads; the best differs by kernel.", 0.015)
    yield Step(
        "Time a larger shape (--shapes): a gain that grows with size is bandwidth, one that does not "
        "is launch cost.",
        0.01,
    )
