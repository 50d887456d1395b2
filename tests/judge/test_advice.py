"""What bounds a kernel and what to do next, rule by rule."""

import dataclasses

import pytest

from kernelgym.judge.advice import advise, top_stall
from kernelgym.judge.gpus import gpu_model
from kernelgym.judge.verdict import (
    Build,
    Counters,
    Coverage,
    KernelCounters,
    KernelResources,
    Measurement,
    Outcome,
    Provenance,
    Speedup,
    Timing,
    Verdict,
)

H200 = gpu_model("NVIDIA H200")
MEGABYTES = 100e6
MICROSECOND = 1e-6


def verdict(
    values,
    *,
    microseconds=40.0,
    launches=1,
    host=None,
    build=None,
    precision="default",
    compile_speedup=None,
):
    seconds = microseconds * MICROSECOND
    row = KernelCounters("scale", "own", launches, seconds, 1.0, tuple(values.items()))
    total = dataclasses.replace(row, name="total", owner="all")
    timing = Timing(
        Measurement(seconds, seconds, seconds, 20, "measured", host),
        speedup_compile=compile_speedup,
        light_fraction=0.5,
    )
    provenance = Provenance(
        kernelgym="0", torch="2", device="NVIDIA H200", protocol="audited", ruleset="kernelbench",
        precision=precision, size="full", mode="train",
    )  # fmt: skip
    return Verdict(
        task="own", outcome=Outcome.CORRECT, reason="", message="", source_hash="",
        provenance=provenance, timing=timing, build=build,
        counters=Counters("cupti", total, (row,)), coverage=Coverage(1.0, 0.0, 0.0),
    )  # fmt: skip


def dram(read=50e6, written=50e6):
    return {"dram_bytes_read": read, "dram_bytes_written": written}


def first(values, *, flops=0, **arguments):
    advice = advise(verdict(values, **arguments), flops=flops, min_bytes=int(MEGABYTES), model=H200)
    return advice, advice.steps[0].text


def test_a_kernel_at_the_memorys_peak_is_a_tie():
    advice, text = first(dram(), microseconds=22.0)
    assert advice.limit.startswith("memory: DRAM runs at 95% of its peak")
    assert "a tie with physics" in advice.limit
    assert "Only fewer bytes can win" in text
    assert not advice.modelled


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"sectors_per_request": 32.0, "useful_byte_share": 0.125}, "touches 32.0 sectors"),
        ({"sectors_per_request": 20.0, "load_sectors_per_request": 31.0}, "touches 31.0 sectors"),
        ({"bank_conflicts_per_request": 7.0}, "Bank conflicts: 7.0 extra passes"),
        (dram(250e6, 50e6), "3.0 times the bytes"),
        ({"warps": 132.0}, "132 warps for 132 multiprocessors"),
        ({"threads_per_instruction": 8.0}, "Only 8 of 32 lanes"),
        ({"atomics": 1e6, "atomic_serialisations": 5e6}, "atomic operations wait"),
        ({"occupancy": 0.2}, "Occupancy is 20%"),
        ({"stall_barrier": 0.6}, "60% of the time warps wait at barriers"),
    ],
)
def test_each_counter_has_its_step(values, words):
    assert words in first(values)[1]


@pytest.mark.parametrize(
    "values",
    [
        {"sectors_per_request": 16.0},  # float4
        {"sectors_per_request": 4.0, "useful_byte_share": 1.0},
        {"bank_conflicts_per_request": 0.01},
        {"threads_per_instruction": 31.0},
        {"occupancy": 0.9},
        {},
    ],
)
def test_what_is_well_is_not_named(values):
    advice, text = first(values)
    assert text.startswith("Let each thread work")
    assert len(advice.steps) == 3


def test_a_host_that_is_slower_than_the_gpu_comes_first():
    advice, text = first(
        {"bank_conflicts_per_request": 7.0}, microseconds=5.0, launches=6, host=60e-6
    )
    assert "12 times as long to launch" in advice.limit
    assert text.startswith("Launch-bound: the host takes 12 times")
    assert "6 launches" in text
    assert advice.steps[1].text.startswith("Bank conflicts")


def test_traffic_between_kernels_asks_for_fusion():
    assert "2 launches move 3.0 times" in first(dram(150e6, 150e6), launches=2)[1]


def test_the_compilers_facts_count():
    kernels = (KernelResources("scale", registers=255, spill_store_bytes=64),)
    assert "Registers spill (64 bytes" in first({}, build=Build("fast", kernels=kernels))[1]
    kernels = (KernelResources("scale", registers=128, shared_bytes=0),)
    text = first({"occupancy": 0.25}, build=Build("fast", kernels=kernels))[1]
    assert "Occupancy is 25%: 128 registers a thread" in text


def test_idle_tensor_cores_are_named_where_they_may_be_used():
    heavy = {"flops": int(1e12), "microseconds": 50e3}
    assert "Tensor cores are idle" in first({"tensor_activity": 0.0}, precision="tf32", **heavy)[1]
    text = first({"tensor_activity": 0.0}, **heavy)[1]
    assert "30% of the peak outside tensor cores" in text


def test_a_compiled_reference_that_is_faster_is_named():
    text = first({}, compile_speedup=Speedup(0.7, 0.69, 0.71))[1]
    assert "torch.compile takes 70% of your time" in text


def test_the_top_stall_is_told_with_its_share():
    row = KernelCounters("k", "own", 1, 1.0, 1.0, (("stall_barrier", 0.2), ("stall_wait", 0.5)))
    assert top_stall(row) == ("warps wait for the instruction before", 0.5)
    assert top_stall(dataclasses.replace(row, values=())) is None


def test_there_is_no_advice_without_times():
    failed = dataclasses.replace(verdict({}), timing=None, outcome=Outcome.INCORRECT)
    assert advise(failed, flops=0, min_bytes=1, model=H200) is None


def test_without_counters_and_rates_it_says_so():
    bare = dataclasses.replace(verdict({}), counters=None)
    advice = advise(bare, flops=0, min_bytes=1, model=None)
    assert "unknown without counters" in advice.limit
