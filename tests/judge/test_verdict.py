"""Verdicts to JSON and back."""

import dataclasses

import pytest

from kernelgym.errors import RecordError
from kernelgym.judge.verdict import (
    Correctness,
    Counters,
    KernelCounters,
    Measurement,
    Mismatch,
    Outcome,
    Provenance,
    Timing,
    Verdict,
    from_json,
    to_json,
)
from kernelgym.toolchain.build import Diagnostic

PROVENANCE = Provenance("0.1", "2.13", "emulator", "audited", "strict", "default", "small")


def verdict(**changes):
    base = Verdict("L1/19", Outcome.INCORRECT, "check.tail", "wrong", "ab", PROVENANCE)
    return dataclasses.replace(base, **changes)


def test_every_part_goes_both_ways():
    measurement = Measurement(1e-6, 0.9e-6, 1.1e-6, 20, "measured", host_span=2e-6)
    row = KernelCounters("k", "own", 1, 1e-6, 1.0, (("requests", 3.0),))
    full = verdict(
        diagnostics=(Diagnostic("model_new.py", 3, 1, "error", "tëxt ☃", "x\n^"),),
        correctness=Correctness(3, 2, None, 5, 10, Mismatch((1, 2), 1.0, None), "all NaN", False),
        timing=Timing(measurement, measurement),
        counters=Counters("emulated", row, (row,), sampled=True),
        seconds=(("check", 0.5),),
    )
    assert from_json(to_json(full)) == full


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_number_that_json_cannot_carry_is_refused(bad):
    with pytest.raises(RecordError, match=r"verdict\.correctness\.error: expected a finite"):
        verdict(correctness=Correctness(1, 1, bad))


def test_another_schema_version_is_refused_by_number():
    text = to_json(verdict()).replace('"schema_version":1', '"schema_version":2')
    with pytest.raises(RecordError, match="expected 1, got 2"):
        from_json(text)


@pytest.mark.parametrize("text", ["", "{}", "[1]", "nonsense", '{"schema_version": 1}', b"\xff"])
def test_what_is_no_verdict_is_refused(text):
    with pytest.raises(RecordError, match="expected a verdict"):
        from_json(text)


def test_counters_are_found_by_name():
    row = KernelCounters("k", "own", 1, 1e-6, 1.0, (("requests", 3.0),))
    assert row.get("requests") == 3.0
    assert row.get("sectors") is None
