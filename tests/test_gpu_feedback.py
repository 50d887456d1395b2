"""What a reader is told of hardware counters, machine code and energy."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from kernelgym.cli.verdict_view import panel
from kernelgym.feedback import energy_text, render_feedback
from kernelgym.judge.verdict import (
    Build,
    Counters,
    KernelCounters,
    Measurement,
    SassSummary,
    Verdict,
    from_json,
    to_json,
)

VALUES = (
    ("dram_bytes_read", 4.19e6),
    ("dram_throughput", 0.913),
    ("occupancy", 0.5),
    ("tensor_activity", 0.0),
    ("bank_conflicts", 0.0),
    ("sectors_per_request", 4.0),
    ("stall_barrier", 0.125),
    ("stall_long_scoreboard", 0.625),
)
COUNTERS = Counters(
    "cupti",
    KernelCounters("total", "all", 1, 2e-6, 1.0, VALUES),
    (KernelCounters("copy4(float4 const*)", "own", 1, 2e-6, 1.0, VALUES),),
    note="7 passes",
)
SASS = SassSummary(
    name="copy4",
    instructions=17,
    mix=(("constant", 6), ("integer", 4)),
    global_loads=2,
    global_loads_16=1,
    global_stores=1,
    local_loads=3,
    local_stores=2,
    async_copies=1,
)
SASS_TEXT = (
    "17 instructions (constant 6, integer 4); 1 of 2 global loads of 16 bytes; "
    "0 of 1 global stores of 16 bytes; local memory: 3 loads, 2 stores; 1 asynchronous copies; "
    "none on tensor cores"
)


@pytest.fixture
def verdict(make_verdict: Callable[..., Verdict]) -> Verdict:
    return make_verdict(
        counters=COUNTERS,
        build=Build("fast", sass=(SASS,)),
        peak_memory=4096,
        peak_memory_eager=8192,
        energy=Measurement(0.0123, 0.0121, 0.0126, 3, "measured"),
        energy_eager=Measurement(1.5, 1.4, 1.6, 3, "measured"),
    )


def shown(verdict: Verdict) -> str:
    said = io.StringIO()
    Console(file=said, width=400).print(panel(verdict, framed=False))
    return said.getvalue()


def test_feedback_names_the_longest_stall_and_what_it_means(verdict: Verdict) -> None:
    text = render_feedback(verdict)
    assert (
        "Counters (cupti; 7 passes): device time 2 us, dram_bytes_read 4.19 MB, "
        "dram_throughput 91.3%, occupancy 50.0%, tensor_activity 0.0%, sectors_per_request 4, "
        "top stall long_scoreboard 62.5% (waits for global or local memory) "
        "(all in copy4(float4 const*), own)"
    ) in text
    assert "barrier" not in text
    assert "bank_conflicts" not in text
    assert f"Machine code of copy4: {SASS_TEXT}" in text
    assert "Energy per call: 12.3 mJ [12.1, 12.6] (eager 1.5 J [1.4, 1.6])" in text


def test_the_terminal_shows_the_same(verdict: Verdict) -> None:
    text = shown(verdict)
    assert "top stall long_scoreboard 62.5%" in text
    assert "tensor_activity 0.0%" in text
    assert "cupti; 7 passes" in text
    assert f"{SASS_TEXT} (machine code)" in text
    assert "4.1 kB (eager 8.19 kB)" in text
    assert "12.3 mJ [12.1, 12.6] (eager 1.5 J [1.4, 1.6])" in text


def test_a_note_of_a_candidate_cannot_steer_a_terminal(
    make_verdict: Callable[..., Verdict],
) -> None:
    total = KernelCounters("total", "all", 1, 2e-6, 1.0)
    counters = Counters("activity", total, note="no hardware counters: \x1b[2J")
    verdict = make_verdict(counters=counters)
    assert "\x1b" not in shown(verdict) + render_feedback(verdict)
    assert "no hardware counters: \ufffd[2J" in render_feedback(verdict)


def test_it_all_goes_to_json_and_back(verdict: Verdict) -> None:
    assert from_json(to_json(verdict)) == verdict


def test_joules_come_in_the_unit_that_reads_best() -> None:
    for joules, expected in (
        (250.0, "250 J [250, 250]"),
        (2.5e-3, "2.5 mJ [2.5, 2.5]"),
        (2.5e-5, "25 uJ [25, 25]"),
    ):
        assert energy_text(Measurement(joules, joules, joules, 3, "measured")) == expected
