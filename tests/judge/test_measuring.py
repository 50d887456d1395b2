"""Timed calls and what bounds them, with a candidate that is a function and a GPU that is the CPU.

What is real here: the reference, the shared buffers, the order of calls, and the grader's clock.
"""

import dataclasses
import time

import pytest
import torch

from kernelgym.config import JudgeConfig
from kernelgym.judge import measuring, protocol
from kernelgym.judge.baseline_store import BaselineRecord, BaselineStore, source_digest
from kernelgym.judge.buffers import dtype_name
from kernelgym.judge.check import Checker
from kernelgym.judge.device import GpuFacts
from kernelgym.judge.device_data import DeviceData, setting_of
from kernelgym.judge.failure import CheckFailed
from kernelgym.judge.gpus import gpu_model
from kernelgym.judge.measuring import Meter
from kernelgym.judge.reference import Reference
from kernelgym.judge.salt import Salt
from kernelgym.judge.sources import find_task
from kernelgym.judge.verdict import Speedup

CONFIG = JudgeConfig(seed=5, size="small", baselines=("eager",))
EAGER_SECONDS = 3e-3


class FunctionCandidate:
    """Answers `Time` by calling a function on what lies in the shared buffers."""

    def __init__(self, checker, function=torch.relu, *, claims=2e-3, sleeps=0.0, arguments=1):
        self.builds = []
        self.inputs = []
        self._checker = checker
        self._function = function
        self._claims = claims
        self._sleeps = sleeps
        self._arguments = arguments

    def ask(self, command, expected, fds=()):
        assert expected is protocol.Timed
        if not command.call:
            return protocol.Timed(1e-6, 1e-6)
        time.sleep(self._sleeps)
        given, taken = self._checker._io
        values = [given.tensor(command.inputs[i]) for i in range(self._arguments)]
        self.inputs.append(values[0].flatten()[:8].clone())
        y = self._function(*values)
        taken.tensor(command.outputs[0]).copy_(y)
        info = protocol.OutputInfo(
            "Tensor", tuple(y.shape), dtype_name(y.dtype), y.stride(), False, True
        )
        return protocol.Timed(self._claims, 1e-5, (info,))


@pytest.fixture
def bench(monkeypatch):
    """Makes a meter and its checker, for a GPU with an L2 of a given size."""
    monkeypatch.setattr(
        measuring, "timed_call", lambda call, device, flush: (call(), EAGER_SECONDS, 1e-5)
    )

    def make(
        name="NVIDIA H200", l2_bytes=60 * 2**20, config=CONFIG, task="L1/19", slack=1.0, **data
    ):
        # A machine that is busy with something else delays the grader; few tests are about that.
        monkeypatch.setattr(measuring, "_CLOCK_SLACK_SECONDS", slack)
        salt = Salt.make(5, task)
        reference = Reference(find_task(task), "small", config, salt, torch.device("cpu"))
        checker = Checker(reference, config, ())
        facts = GpuFacts(name, "GPU-0", l2_bytes, "13.0", "580")
        model = gpu_model(name)
        known = DeviceData(setting_of(facts), sold=model, light=model)
        known = dataclasses.replace(known, **data)
        return Meter(checker, reference, facts, salt, config, known), checker

    return make


def test_an_honest_candidate_gets_its_speedup(bench):
    meter, checker = bench()
    timing = meter.measure(FunctionCandidate(checker))
    assert timing.candidate.median == 2e-3
    assert timing.eager.median == EAGER_SECONDS
    assert timing.speedup_eager.value == pytest.approx(1.5)
    assert timing.candidate.batches >= 20
    assert timing.compile is None
    assert 0 < timing.light_fraction < 1


def test_every_timed_call_gets_inputs_of_its_own(bench):
    meter, checker = bench()
    candidate = FunctionCandidate(checker)
    meter.measure(candidate)
    distinct = {tuple(values.tolist()) for values in candidate.inputs}
    assert len(distinct) == len(candidate.inputs) > 20


def test_a_result_kept_from_an_earlier_call_is_found(bench):
    meter, checker = bench()
    kept = []

    def stale(x):
        kept.append(torch.relu(x))
        return kept[0]

    with pytest.raises(CheckFailed) as caught:
        meter.measure(FunctionCandidate(checker, stale))
    assert caught.value.reason == "cheat.timed_output"


def test_a_time_that_the_graders_clock_contradicts_is_refused(bench):
    meter, checker = bench(slack=2e-3)
    with pytest.raises(CheckFailed) as caught:
        meter.measure(FunctionCandidate(checker, claims=1e-3, sleeps=0.03))
    assert caught.value.reason == "cheat.clock"


def test_a_slow_call_that_says_so_is_believed(bench):
    meter, checker = bench()
    timing = meter.measure(FunctionCandidate(checker, claims=0.03, sleeps=0.03))
    assert timing.speedup_eager.value == pytest.approx(0.1)


@pytest.mark.parametrize("claims", [0.0, -1.0, float("inf"), float("nan")])
def test_a_time_that_is_none_is_refused(bench, claims):
    meter, checker = bench()
    with pytest.raises(CheckFailed) as caught:
        meter.measure(FunctionCandidate(checker, claims=claims))
    assert caught.value.reason == "cheat.clock"


def test_a_time_below_the_floor_of_physics_is_refused(bench):
    meter, checker = bench(l2_bytes=0)
    with pytest.raises(CheckFailed) as caught:
        meter.measure(FunctionCandidate(checker, claims=1e-9))
    assert caught.value.reason == "cheat.physics"


def test_a_gpu_that_is_not_known_has_no_floor(bench):
    meter, checker = bench("NVIDIA H900", l2_bytes=0)
    timing = meter.measure(FunctionCandidate(checker, claims=1e-9))
    assert timing.light_fraction is None


# --- baselines ------------------------------------------------------------------------------------


RATIO = Speedup(0.5, 0.495, 0.505)


def stored(ratio=RATIO, task="L1/19", **fields):
    found = find_task(task)
    setting = setting_of(GpuFacts("NVIDIA H200", "GPU-0", 0, "13.0", "580"))
    record = BaselineRecord(
        **{
            "task": task,
            "size": "small",
            "mode": "train",
            "precision": "default",
            "kind": "compile",
            "source": source_digest(found, "small"),
            "setting": setting,
            "date": "2026-12-01",
            "kernelgym": "0",
            "median": 1e-3,
            "ratio": ratio,
            **fields,
        }
    )
    return BaselineStore([record])


BOTH = CONFIG.replace(baselines=("eager", "compile"))


def test_compile_is_the_live_eager_time_times_the_stored_ratio(bench):
    meter, checker = bench(config=BOTH, store=stored())
    timing = meter.measure(FunctionCandidate(checker))
    assert timing.compile.source == "stored"
    assert timing.compile.median == pytest.approx(EAGER_SECONDS / 2)
    assert timing.speedup_compile.value == pytest.approx(0.75)
    assert timing.speedup_compile.low < 0.75 * 0.99
    assert timing.notes == ()


def test_another_driver_is_noted(bench):
    other = dataclasses.replace(
        setting_of(GpuFacts("NVIDIA H200", "GPU-0", 0, "13.0", "580")), driver="570"
    )
    meter, checker = bench(config=BOTH, store=stored(setting=other))
    timing = meter.measure(FunctionCandidate(checker))
    assert timing.compile.source == "stored"
    assert "driver 570 (here 580)" in timing.notes[0]


class FakeCompile:
    """Stands in for `torch.compile`: what it makes is the model itself, or an error."""

    def __init__(self, monkeypatch, error=None):
        self.models = []
        self._error = error
        monkeypatch.setattr(torch, "compile", self)

    def __call__(self, model):
        self.models.append(model)

        def call(*inputs):
            if self._error is not None:
                raise self._error
            return model(*inputs)

        return call


def test_without_a_record_compile_is_measured_live(bench, monkeypatch):
    compiled = FakeCompile(monkeypatch)
    meter, checker = bench(config=BOTH)
    timing = meter.measure(FunctionCandidate(checker))
    assert len(compiled.models) == 1
    assert timing.compile.source == "measured"
    assert timing.speedup_compile.value == pytest.approx(1.5)


def test_live_baselines_leave_the_store_aside(bench, monkeypatch):
    compiled = FakeCompile(monkeypatch)
    meter, checker = bench(config=BOTH.replace(live_baselines=True), store=stored())
    assert meter.measure(FunctionCandidate(checker)).compile.source == "measured"
    assert len(compiled.models) == 1


def test_a_compiler_that_gives_up_is_noted_and_the_rest_is_measured(bench, monkeypatch):
    FakeCompile(monkeypatch, RuntimeError("inductor: no such lowering"))
    meter, checker = bench(config=BOTH)
    timing = meter.measure(FunctionCandidate(checker))
    assert timing.compile is timing.speedup_compile is None
    assert timing.eager.median == EAGER_SECONDS
    assert timing.notes == ("torch.compile failed: RuntimeError: inductor: no such lowering",)


def test_what_is_known_not_to_compile_is_not_tried_again(bench, monkeypatch):
    compiled = FakeCompile(monkeypatch)
    broken = stored(median=None, ratio=None, error="out of memory")
    meter, checker = bench(config=BOTH, store=broken)
    timing = meter.measure(FunctionCandidate(checker))
    assert compiled.models == []
    assert timing.notes == ("no time of torch.compile: out of memory",)


def test_only_what_is_asked_for_is_told(bench):
    meter, checker = bench(config=CONFIG.replace(baselines=("compile",)), store=stored())
    timing = meter.measure(FunctionCandidate(checker))
    assert timing.eager is timing.speedup_eager is None
    assert timing.compile.median == pytest.approx(EAGER_SECONDS / 2)


# --- light and clocks -----------------------------------------------------------------------------


def test_a_time_below_light_is_cut_off_and_noted(bench):
    slow = dataclasses.replace(gpu_model("NVIDIA H200"), dram_bandwidth=1e6)
    meter, checker = bench(light=slow)
    timing = meter.measure(FunctionCandidate(checker))
    assert timing.light_fraction == 1.0
    assert "never went there" in timing.notes[0]


def test_less_arithmetic_than_the_references_is_measured_by_its_traffic(bench):
    weak = dataclasses.replace(
        gpu_model("NVIDIA H200"), fp32_rate=1e6, tf32_rate=0.0, fp16_rate=0.0
    )
    meter, checker = bench(task="L1/1", light=weak)
    timing = meter.measure(FunctionCandidate(checker, torch.matmul, arguments=2))
    assert 0 < timing.light_fraction < 1
    assert "does less of it" in timing.notes[0]


class FakeClocks:
    error = RuntimeError

    def __init__(self, reasons):
        self._reasons = iter(reasons)
        self._mhz = 1980.0

    def multiprocessor_mhz(self):
        self._mhz -= 1
        return self._mhz

    def throttling(self):
        return next(self._reasons, ())


def test_clocks_are_read_after_each_batch_and_throttling_is_noted(bench):
    meter, checker = bench(clocks=FakeClocks([("the power cap",)] * 3))
    timing = meter.measure(FunctionCandidate(checker))
    clocks = dict(timing.clocks)
    assert clocks["sm_high"] == 1979.0
    assert clocks["sm_low"] <= 1979.0 - 39
    assert timing.notes == ("clocks were held down by the power cap in 3 of 40 batches",)


def test_a_reference_that_writes_to_its_inputs_gets_them_back(bench):
    meter, _ = bench()
    seen = []

    class InPlace(torch.nn.Module):
        def forward(self, x):
            seen.append(float(x.sum()))
            return x.zero_()

    meter._reference._model = InPlace()
    meter._reference.state = {}
    side = meter._side(compiled=False)
    side()
    side()
    assert seen[0] == seen[1] != 0.0
