"""Timed calls and what bounds them, with a candidate that is a function and a GPU that is the CPU.

What is real here: the reference, the shared buffers, the order of calls, and the grader's clock.
"""

import time

import pytest
import torch

from kernelgym.config import JudgeConfig
from kernelgym.judge import measuring, protocol
from kernelgym.judge.buffers import dtype_name
from kernelgym.judge.check import Checker
from kernelgym.judge.device import GpuFacts
from kernelgym.judge.failure import CheckFailed
from kernelgym.judge.measuring import Meter
from kernelgym.judge.reference import Reference
from kernelgym.judge.salt import Salt
from kernelgym.judge.sources import find_task

CONFIG = JudgeConfig(seed=5, size="small", baselines=("eager",))
EAGER_SECONDS = 3e-3


class FunctionCandidate:
    """Answers `Time` by calling a function on what lies in the shared buffers."""

    def __init__(self, checker, function=torch.relu, *, claims=2e-3, sleeps=0.0):
        self.builds = []
        self.inputs = []
        self._checker = checker
        self._function = function
        self._claims = claims
        self._sleeps = sleeps

    def ask(self, command, expected, fds=()):
        assert expected is protocol.Timed
        if not command.call:
            return protocol.Timed(1e-6, 1e-6)
        time.sleep(self._sleeps)
        given, taken = self._checker._io
        x = given.tensor(command.inputs[0])
        self.inputs.append(x.flatten()[:8].clone())
        y = self._function(x)
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

    def make(name="NVIDIA H200", l2_bytes=60 * 2**20):
        salt = Salt.make(5, "L1/19")
        reference = Reference(find_task("L1/19"), "small", CONFIG, salt, torch.device("cpu"))
        checker = Checker(reference, CONFIG, ())
        facts = GpuFacts(name, "GPU-0", l2_bytes, "13.0", "580")
        return Meter(checker, reference, facts, salt, CONFIG), checker

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
    meter, checker = bench()
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
