from __future__ import annotations

import numpy as np
import pytest

from kernelgym import observation
from kernelgym.edits import WriteFile, parse
from kernelgym.feedback import MAX_FEEDBACK, clip, format_bytes, format_seconds, summary
from kernelgym.judge.verdict import (
    Build,
    Correctness,
    Coverage,
    Diagnostic,
    KernelResources,
    Mismatch,
    Outcome,
)
from kernelgym.observation import COUNTERS, OUTCOMES, make_observation, render_feedback
from kernelgym.workspace import Workspace


def observe(verdict, turn=1):
    return make_observation("task", "files", "said", verdict, turn)


def test_without_a_verdict_all_is_zero_and_masked(make_verdict):
    seen = observe(None, turn=0)
    assert seen in observation.make_space(8)
    assert seen["outcome"] == 0
    for name in ("speedup", "runtime", "timing_mask", "counters", "counters_mask"):
        assert not seen[name].any()


def test_values_stand_where_the_names_say(make_verdict, make_counters):
    verdict = make_verdict(
        eager=(2.0, 1.5, 2.5),
        counters=make_counters(dram_bytes_read=4096.0, sectors_per_request=4.0, unheard_of=1.0),
        coverage=Coverage(0.5, 0.5, 0.0),
    )
    seen = observe(verdict)
    assert seen in observation.make_space(8)
    assert OUTCOMES[seen["outcome"]] is Outcome.CORRECT
    np.testing.assert_allclose(seen["speedup"], [[2.0, 1.5, 2.5], [0, 0, 0]])
    np.testing.assert_allclose(seen["runtime"], [1e-5, 2e-5, 0])
    np.testing.assert_array_equal(seen["timing_mask"], [1, 1, 0])
    known = {
        name: value
        for name, value, mask in zip(COUNTERS, seen["counters"], seen["counters_mask"], strict=True)
        if mask
    }
    assert known == pytest.approx(
        {
            "device_time": 2e-6,
            "launches": 1,
            "dram_bytes_read": 4096,
            "sectors_per_request": 4,
            "achieved_fraction_of_light": 0.75,
            "own_share": 0.5,
        }
    )


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_has_a_number_of_its_own(make_verdict, outcome):
    seen = observe(make_verdict(outcome))
    assert seen["outcome"] == 1 + list(Outcome).index(outcome)
    assert seen in observation.make_space(8)


def test_absurd_values_are_clipped_into_the_space(make_verdict, make_counters):
    verdict = make_verdict(
        eager=(1e30, -1.0, 1e300), counters=make_counters(requests=1e300, atomics=-5.0)
    )
    seen = make_observation("t" * 2**21, "w" * 2**25, "f" * 2**17, verdict, 8)
    assert seen in observation.make_space(8)
    assert seen["counters"][COUNTERS.index("atomics")] == 0
    assert np.isfinite(seen["counters"]).all()


def test_workspace_text_is_in_the_form_of_edits():
    workspace = Workspace({"model_new.py": "x = '```'\n```\n", "k.cu": "int a;\n"})
    shown = observation.render_workspace(workspace)
    assert parse(shown).edits == tuple(WriteFile(p, t) for p, t in workspace.files.items())


def test_feedback_says_what_the_next_edit_needs(make_verdict, make_counters):
    verdict = make_verdict(
        Outcome.INCORRECT,
        reason="check.tail",
        message="The tail is wrong.",
        diagnostics=(
            Diagnostic("k.cu", 3, 7, "error", "race", "int a;\n    ^", "emulator", "race.shared"),
            Diagnostic("", 0, 0, "note", "no place"),
        ),
        correctness=Correctness(
            5,
            3,
            12.5,
            31,
            4096,
            Mismatch((0, 1023), 1.5, None),
            "all errors in the last 31 columns",
        ),
        build=Build("emulator", kernels=(KernelResources("relu", registers=32),)),
        output="printed [bold]",
    )
    assert render_feedback(verdict) == (
        "Outcome: incorrect (check.tail)\n"
        "The tail is wrong.\n"
        "Remedy: Handle sizes that are not multiples of the block or the vector width.\n"
        "k.cu:3:7: error: race [race.shared]\nint a;\n    ^\n"
        "note: no place\n"
        "Check: 3 of 5 input draws within the error budget; largest error 12.5 of the budget\n"
        "Wrong: 31 of 4096 elements\n"
        "Worst: output[0, 1023] expected 1.5, got not finite\n"
        "Pattern: all errors in the last 31 columns\n"
        "Kernel relu: registers 32\n"
        "The candidate printed:\nprinted [bold]"
    )


def test_feedback_of_a_correct_kernel_has_times_and_counters(make_verdict, make_counters):
    verdict = make_verdict(
        eager=(2.0, 1.5, 2.5),
        compiled=(1.1, 0.9, 1.2),
        counters=make_counters(dram_bytes_read=4.19e6),
        coverage=Coverage(0.9, 0.1, 0.0),
        peak_memory=4096,
    )
    text = render_feedback(verdict)
    assert "Time per call: 10 us [9 us, 11 us], modelled" in text
    assert "Baseline compile: 20 us" in text
    assert "Speedup against eager: 2.000x [1.500, 2.500]" in text
    assert "speed of light: 75.0%" in text
    assert "own 90%, library 10%, foreign 0%" in text
    assert "Counters (emulated): device time 2 us, dram_bytes_read 4.19 MB" in text
    assert "(all in relu, own)" in text
    assert "Peak memory: 4.1 kB" in text
    assert summary(verdict) == "correct, 2.00x eager, 1.10x compile"


def test_feedback_is_bounded(make_verdict):
    many = tuple(Diagnostic("a.cu", i, 1, "error", "x" * 5000) for i in range(50))
    text = render_feedback(make_verdict(Outcome.COMPILE_ERROR, diagnostics=many))
    assert len(text) <= MAX_FEEDBACK
    assert "left out" in text


def test_feedback_cannot_steer_a_terminal(make_verdict):
    said = "\x1b[2Ja\tb\r\u202ec\ud800\0\x9b\n"
    text = render_feedback(make_verdict(Outcome.REJECTED, output=said))
    assert text.endswith("\ufffd[2Ja\tb\ufffd\ufffdc\ufffd\ufffd\ufffd\n")


@pytest.mark.parametrize("length", [99, 100, 101, 10_000])
def test_clip_keeps_both_ends(length):
    text = "a" + "-" * (length - 2) + "z"
    short = clip(text, 100)
    assert len(short) == min(length, 100)
    assert short[0] + short[-1] == "az"


def test_units():
    assert [format_seconds(x) for x in (2.0, 1.5e-3, 12.34e-6, 3e-9, 0.0)] == [
        *("2 s", "1.5 ms", "12.34 us", "3 ns", "0 ns")
    ]
    assert [format_bytes(x) for x in (5, 4190, 4.19e6, 1.5e10)] == [
        *("5 B", "4.19 kB", "4.19 MB", "15 GB")
    ]
