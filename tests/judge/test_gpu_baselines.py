"""Stored baselines, ceilings and clocks on a GPU; skipped where there is none."""

import dataclasses

import pytest
import torch

from kernelgym.config import JudgeConfig
from kernelgym.judge import baseline_store
from kernelgym.judge.baseline_build import BuildOptions, build
from kernelgym.judge.baseline_store import read_records
from kernelgym.judge.baseline_worker import Bench
from kernelgym.judge.ceilings import measure_ceilings
from kernelgym.judge.gpus import gpu_model
from kernelgym.judge.judge import Judge
from kernelgym.judge.nvml import open_clocks
from kernelgym.toolchain.cuda import find_nvcc
from tests.judge.candidates import candidate

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available() or find_nvcc() is None, reason="needs a GPU and nvcc"
    ),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Records of three tasks at their small sizes, one of them a product."""
    out = tmp_path_factory.mktemp("store") / "store.jsonl"
    tasks = ("L1/19", "L1/1", "L2/12")
    return build(BuildOptions(tasks=tasks, size="small", out=out, workers=3, limit_seconds=200))


def test_every_task_is_measured_in_both_kinds(built):
    assert (built.measured, built.failed, built.unfinished) == (6, 0, 0), built.log.read_text()
    for record in read_records(built.path):
        assert 1e-6 < record.low < record.median < record.high < 1e-2
        assert len(record.batches) >= 20
        assert record.setting.device == torch.cuda.get_device_properties(0).name
        assert (record.ratio is None) == (record.kind == "eager")
        assert record.peak_memory > 0


def test_the_judge_takes_the_ratio_from_the_store(built, monkeypatch):
    records = read_records(built.path)
    monkeypatch.setattr(baseline_store, "shipped", lambda device: records)
    monkeypatch.setattr(baseline_store, "user_folder", lambda: built.path.parent / "none")
    config = JudgeConfig(device="cuda", size="small", seed=0, draws=2, run_timeout=20)
    with Judge(config) as judge:
        verdict = judge.evaluate("L1/19", candidate())
    timing = verdict.timing
    assert timing.compile.source == "stored"
    ratio = next(r.ratio for r in records if (r.task, r.kind) == ("L1/19", "compile"))
    assert timing.compile.median == pytest.approx(timing.eager.median * ratio.value)
    assert timing.speedup_compile.low < timing.speedup_compile.value < timing.speedup_compile.high
    assert verdict.peak_memory_eager > 0
    assert 0 < timing.light_fraction <= 1
    assert dict(verdict.seconds)["time"] < 1.0


def test_ceilings_are_found_and_within_the_data_sheet(tmp_path):
    bench = Bench.of(0, tmp_path)
    clocks = open_clocks(bench.facts.uuid)
    found, problems = measure_ceilings(bench.device, bench.facts.l2_bytes, bench.seconds_of, clocks)
    assert not [text for text in problems if not text.startswith("fp8")]
    assert 0 < found.launch_seconds < 2e-5
    model = gpu_model(bench.facts.name)
    if model is not None:
        assert 0.7 < max(found.dram_read, found.dram_write) / model.dram_bandwidth <= 1.0
        assert 0.4 < found.fp32 / model.fp32_rate <= 1.0
        assert found.tf32 <= model.tf32_rate
        assert found.fp16 <= model.fp16_rate
    known = [value for value in dataclasses.astuple(found) if value is not None]
    assert all(value > 0 for value in known)


def test_clocks_are_in_the_verdict():
    pytest.importorskip("pynvml")
    config = JudgeConfig(device="cuda", size="small", seed=0, draws=2, baselines=("eager",))
    with Judge(config) as judge:
        timing = judge.evaluate("L1/19", candidate()).timing
    clocks = dict(timing.clocks)
    assert 100 < clocks["sm_low"] <= clocks["sm_median"] <= clocks["sm_high"] < 5000
