"""From a candidate's answer to a verdict's counters, and the session that counts, on a fake CUPTI."""

from __future__ import annotations

import ctypes
import dataclasses
import math
import socket
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch

from kernelgym.judge import hardware_counters, protocol, range_profiler
from kernelgym.judge.check import Placed
from kernelgym.judge.counter_plans import PlanFailed
from kernelgym.judge.cupti import CuptiError
from kernelgym.judge.device import GpuFacts
from kernelgym.judge.gpus import gpu_model
from kernelgym.judge.hardware_counters import count_in_candidate, with_hardware_counters
from kernelgym.judge.metrics import METRICS
from kernelgym.judge.range_profiler import CounterPlan, Counts, RangeProfiler
from kernelgym.judge.verdict import Counters, KernelCounters

PLAN = CounterPlan("libcupti.so", "GH100", METRICS, METRICS, b"image", 7)
H200 = gpu_model("NVIDIA H200")
FACTS = GpuFacts("NVIDIA H200", "0123", 2**26, "13.0", "580")
TIMES = Counters(
    "activity",
    KernelCounters("total", "all", 4, 1e-5, 1.0),
    (
        KernelCounters("copy(float*)", "own", 2, 8e-6, 0.8),
        KernelCounters("Memcpy DtoD", "foreign", 1, 1e-6, 0.1),
        KernelCounters("gemm", "library", 1, 1e-6, 0.1),
    ),
)


def launch(name: str, **values: float | None) -> protocol.CountedLaunch:
    told = {**dict.fromkeys(METRICS, 0.0), "time": 4000.0, **values}
    return protocol.CountedLaunch(name, tuple(told[metric] for metric in METRICS))


def counted(*launches: protocol.CountedLaunch, complete: bool = True) -> protocol.Counted:
    return protocol.Counted(launches, complete)


def test_rows_keep_their_times_and_gain_values() -> None:
    copy = launch("copy(float*)", dram_bytes_read=4096.0, occupancy=80.0)
    found = with_hardware_counters(TIMES, counted(copy, copy, launch("gemm")), PLAN, H200)
    assert found.source == "cupti"
    assert not found.sampled
    assert found.note == "7 passes"
    first, copied, gemm = found.kernels
    assert (first.time, first.launches, first.owner) == (8e-6, 2, "own")
    assert first.get("dram_bytes_read") == 8192
    assert first.get("occupancy") == pytest.approx(0.8)
    assert copied.values == ()
    assert gemm.get("dram_bytes_read") == 0
    assert found.total.get("dram_bytes_read") == 8192
    assert found.total.time == 1e-5


@pytest.mark.parametrize(
    ("given", "sampled"),
    [
        ((launch("copy(float*)"), launch("gemm")), True),
        ((launch(""), launch(""), launch("")), True),
        ((launch("copy(float*)"), launch("copy(float*)"), launch("gemm")), False),
    ],
)
def test_launches_that_were_not_counted_show(
    given: tuple[protocol.CountedLaunch, ...], sampled: bool
) -> None:
    assert with_hardware_counters(TIMES, counted(*given), PLAN, H200).sampled is sampled
    assert with_hardware_counters(TIMES, counted(*given, complete=False), PLAN, H200).sampled


def test_what_cannot_be_true_is_left_out() -> None:
    impossible = launch(
        "gemm",
        tensor_activity=1e6,
        instructions=-1.0,
        occupancy=None,
        load_requests=10.0,
        load_sectors=1000.0,
        # More than 4.8 TB/s would bring in 4 us.
        dram_bytes_read=1e9,
    )
    found = with_hardware_counters(TIMES, counted(impossible), PLAN, H200)
    names = {name for name, _ in found.total.values}
    assert not names & {
        "tensor_activity",
        "instructions",
        "occupancy",
        "load_sectors_per_request",
        "sectors",
        "dram_bytes_read",
        "dram_throughput",
    }
    assert "warps" in names
    assert "7 values that cannot be true were left out" in found.note
    # Of a card whose rates are not known, any traffic may be true.
    anywhere = with_hardware_counters(TIMES, counted(impossible), PLAN, None)
    assert anywhere.total.get("dram_bytes_read") == 1e9


def test_an_answer_of_another_shape_counts_nothing() -> None:
    odd = protocol.CountedLaunch("gemm", (1.0,))
    found = with_hardware_counters(TIMES, counted(odd), PLAN, H200)
    assert found.note == "the profiler counted no kernel"
    assert found.kernels == TIMES.kernels
    assert found.source == "activity"


# --- asking ----------------------------------------------------------------------------------


class Candidate:
    """Answers, or does not."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[Any] = []

    def ask(self, command: Any, expected: Any) -> Any:
        self.asked.append(command)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def death(self) -> str:
        return "killed by signal 9"


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Any]:
    monkeypatch.setattr(hardware_counters, "find_cupti", lambda: "libcupti.so")
    monkeypatch.setattr(hardware_counters, "gpu_facts", lambda device: FACTS)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(hardware_counters, "stored_plan", lambda *given: PLAN)
    placed = Placed(arguments=(1,), outputs=(), fds=(), sizes=())

    def asked(answer: Any) -> Any:
        candidate: Any = Candidate(answer)
        cache: Any = None
        told = count_in_candidate(candidate, placed, 7, torch.device("cuda", 0), cache)
        if not isinstance(told, str):
            assert candidate.asked == [protocol.Count((1,), 7, PLAN)]
        return told

    return asked


def failed(message: str) -> protocol.Failed:
    return protocol.Failed("run", "CuptiError", message, "")


@pytest.mark.parametrize(
    ("answer", "note"),
    [
        (protocol.CandidateTimeout(), "no hardware counters: the candidate's time was over"),
        (protocol.CandidateGone(), "no hardware counters: killed by signal 9 while counting"),
        (failed("boom"), "no hardware counters: boom"),
        (
            failed(str(CuptiError("cuptiRangeProfilerSetConfig", 35))),
            "no hardware counters: cuptiRangeProfilerSetConfig: insufficient privileges "
            "(ERR_NVGPUCTRPERM) (CUPTI error 35); kernelgym doctor tells what allows them",
        ),
    ],
)
def test_a_candidate_that_does_not_count_gets_a_note(
    answer: Any, note: str, ask: Callable[[Any], Any]
) -> None:
    assert ask(answer) == note


def test_a_candidate_that_counts_is_heard(ask: Callable[[Any], Any]) -> None:
    answer = counted(launch("gemm"))
    assert ask(answer) == (answer, PLAN)


def test_a_plan_that_fails_is_a_note(
    monkeypatch: pytest.MonkeyPatch, ask: Callable[[Any], Any]
) -> None:
    def fails(*given: Any) -> CounterPlan:
        raise PlanFailed("CUPTI crashed with signal 11")

    monkeypatch.setattr(hardware_counters, "stored_plan", fails)
    assert ask(None) == "no hardware counters: CUPTI crashed with signal 11"


def test_without_the_library_the_note_says_what_brings_it(
    monkeypatch: pytest.MonkeyPatch, ask: Callable[[Any], Any]
) -> None:
    monkeypatch.setattr(hardware_counters, "find_cupti", lambda: None)
    assert "pip install nvidia-cuda-cupti" in ask(None)


def test_what_is_counted_comes_through_the_channel() -> None:
    ends = socket.socketpair()
    grader, candidate = map(protocol.Channel, ends)
    said = protocol.Counted(
        (protocol.CountedLaunch("gemm", (1.0, None, 2.0)),), False, (("run", 0.5),)
    )
    candidate.reply(said)
    assert grader.answer(5.0) == said
    # JSON has no numbers that are none.
    candidate.reply(counted(protocol.CountedLaunch("gemm", (math.nan, math.inf))))
    assert grader.answer(5.0) == counted(protocol.CountedLaunch("gemm", (None, None)))
    payload = b'{"type":"Counted","launches":[{"name":"gemm","values":["many"]}],"complete":true}'
    ends[1].sendall(len(payload).to_bytes(8, "little") + payload)
    with pytest.raises(protocol.CandidateGone, match="expected an answer"):
        grader.answer(5.0)
    command = protocol.Count((1,), 7, PLAN)
    grader.command(command)
    assert candidate.next_command() == (command, ())
    grader.close()
    candidate.close()


# --- the session -----------------------------------------------------------------------------


@dataclasses.dataclass
class FakeCupti:
    """Plays CUPTI's part in a session: each row of `rows` is a range."""

    rows: list[tuple[float, ...]]
    fails: str = ""
    dropped: int = 0
    called: list[str] = dataclasses.field(default_factory=list)
    library: Any = dataclasses.field(
        # No listener: another tool has subscribed.
        default_factory=lambda: types.SimpleNamespace(cuptiSubscribe=lambda *given: 39)
    )

    def call(self, function: str, **fields: Any) -> Any:
        self.called.append(function)
        if function == self.fails:
            raise CuptiError(function, 35)
        if function == "cuptiProfilerHostEvaluateToGpuValues":
            for index, value in enumerate(self.rows[fields["rangeIndex"]]):
                fields["pMetricValues"][index] = value
        return types.SimpleNamespace(
            pHostObject=1,
            pRangeProfilerObject=2,
            counterDataSize=64,
            numOfRangeDropped=self.dropped,
            numTotalRanges=len(self.rows),
        )


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Counts]:
    monkeypatch.setattr(range_profiler, "_current_context", lambda: 1)
    plan = CounterPlan("libcupti.so", "GH100", ("time", "warps"), ("t", "w"), b"image", 1)

    def counting(cupti: FakeCupti, names: tuple[str, ...] = (), call: Any = None) -> Counts:
        monkeypatch.setattr(range_profiler, "Cupti", lambda path: cupti)
        return RangeProfiler(plan).count(call or (lambda: None), lambda: None, names)

    return counting


def test_a_session_gives_a_row_for_each_kernel(count: Callable[..., Counts]) -> None:
    cupti = FakeCupti([(1.0, 2.0), (math.nan, math.inf)])
    found = count(cupti, ("first", "second"))
    assert [one.name for one in found.launches] == ["first", "second"]
    assert [one.values for one in found.launches] == [(1.0, 2.0), (None, None)]
    assert found.complete
    order = [name for name in cupti.called if name.startswith("cuptiRangeProfiler")]
    assert order[0] == "cuptiRangeProfilerEnable"
    assert order[-5:] == [
        "cuptiRangeProfilerStart",
        "cuptiRangeProfilerStop",
        "cuptiRangeProfilerDecodeData",
        "cuptiRangeProfilerDisable",
        "cuptiRangeProfilerGetCounterDataInfo",
    ]
    assert {step for step, _ in found.seconds} >= {"enable", "configure", "run", "decode"}


def test_names_that_do_not_fit_are_not_guessed(count: Callable[..., Counts]) -> None:
    found = count(FakeCupti([(1.0, 2.0), (3.0, 4.0)]), ("only one",))
    assert [one.name for one in found.launches] == ["", ""]
    assert not count(FakeCupti([(1.0, 2.0)], dropped=3)).complete
    # As many as there was room for: there may have been more.
    assert not count(FakeCupti([(1.0, 2.0)] * 16)).complete


def test_a_session_ends_whatever_happens(count: Callable[..., Counts]) -> None:
    def raises() -> None:
        raise RuntimeError("of the candidate's")

    cupti = FakeCupti([])
    with pytest.raises(RuntimeError, match="of the candidate's"):
        count(cupti, call=raises)
    assert cupti.called[-2:] == ["cuptiRangeProfilerStop", "cuptiRangeProfilerDisable"]
    refused = FakeCupti([], fails="cuptiRangeProfilerSetConfig")
    with pytest.raises(CuptiError, match="ERR_NVGPUCTRPERM"):
        count(refused)
    assert refused.called[-1] == "cuptiRangeProfilerDisable"


def test_counting_needs_a_driver() -> None:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        with pytest.raises(OSError, match="libcuda"):
            range_profiler._current_context()
    else:
        assert range_profiler._current_context() >= 0
