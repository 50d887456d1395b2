"""Hardware counters, machine code and joules of whole judgements on a GPU; skipped without one."""

import dataclasses
import importlib.util

import pytest
import torch

from kernelgym.config import JudgeConfig
from kernelgym.judge.judge import Judge
from kernelgym.judge.verdict import Outcome, from_json, to_json
from kernelgym.toolchain.cuda import find_nvcc
from kernelgym.toolchain.sass import find_disassembler
from tests.judge.candidates import candidate

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available() or find_nvcc() is None, reason="needs a GPU and nvcc"
    ),
]


@pytest.fixture(scope="module")
def config():
    return JudgeConfig(
        device="cuda", size="small", seed=0, draws=2, run_timeout=60, baselines=("eager",)
    )


@pytest.fixture(scope="module")
def verdict(config):
    with Judge(config) as judge:
        verdict = judge.evaluate("L1/19", candidate())
    assert verdict.outcome is Outcome.CORRECT, (verdict.reason, verdict.message)
    return verdict


def test_the_hardware_counts_what_the_kernel_does(verdict):
    counters = verdict.counters
    if "ERR_NVGPUCTRPERM" in counters.note or "CUPTI is not there" in counters.note:
        pytest.skip(counters.note)
    assert counters.source == "cupti", counters.note
    assert not counters.sampled
    (kernel,) = (row for row in counters.kernels if row.owner == "own")
    # A thread an element: each warp loads and stores 128 adjacent bytes.
    assert kernel.get("load_sectors_per_request") == pytest.approx(4, rel=0.02)
    assert kernel.get("store_sectors_per_request") == pytest.approx(4, rel=0.02)
    assert kernel.get("requests") == pytest.approx(2 * kernel.get("warps"), rel=0.02)
    assert kernel.get("bank_conflicts") == 0
    assert kernel.get("tensor_activity") == 0
    assert 0 < kernel.get("occupancy") <= 1
    assert kernel.get("instructions") > kernel.get("warps")
    assert from_json(to_json(verdict)) == verdict


def test_the_candidate_takes_no_more_memory_than_eager(verdict):
    assert 0 < verdict.peak_memory <= verdict.peak_memory_eager * 1.1


@pytest.mark.skipif(find_disassembler() is None, reason="needs nvdisasm")
def test_the_machine_code_is_summarised(verdict):
    (sass,) = verdict.build.sass
    assert sass.name == "relu_kernel"
    assert (sass.global_loads, sass.global_stores) == (1, 1)
    assert (sass.tensor, sass.local_loads, sass.local_stores) == (0, 0, 0)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("pynvml") is None, reason="needs nvidia-ml-py")
def test_joules_have_an_interval(config):
    with Judge(dataclasses.replace(config, energy=True, counters=False)) as judge:
        verdict = judge.evaluate("L1/19", candidate())
    assert verdict.outcome is Outcome.CORRECT, (verdict.reason, verdict.message)
    for joules in (verdict.energy, verdict.energy_eager):
        assert joules.source == "measured"
        assert 0 < joules.median < 1.0
        assert joules.low <= joules.median <= joules.high
