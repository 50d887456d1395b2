"""Correct kernels raise no finding in any order; their twins without synchronisation always do."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest

from kernelgym.toolchain.emulator import Variant

SOURCE = Path(__file__).with_name("races.cu")

# What is found in the broken twin. In global memory only two blocks, or threads of one, can meet.
BROKEN = {
    "tree": "race.shared",
    "double_buffered": "race.shared",
    "scan": "race.shared",
    "histogram": "race.shared",
    "last_block": "race.global",
    "maximum": "race.global",
    "flag": "race.shared",
    "in_place": "race.global",
    "narrow": "race.shared",
    "normalise": "race.shared",
}


@pytest.fixture(scope="module")
def report_of(emulator: Any) -> Any:
    library = ctypes.CDLL(str(emulator.compile(SOURCE.read_text(), Variant.CHECKED)))

    def run(function: str, order: int) -> Any:
        emulator.runtime.reset()
        emulator.runtime.set_order(order)
        getattr(library, function)()
        emulator.runtime.set_order(0)
        return emulator.report()

    return run


@pytest.mark.parametrize("order", [0, 1, 5])
@pytest.mark.parametrize("name", list(BROKEN))
def test_correct_kernels_raise_nothing(report_of: Any, name: str, order: int) -> None:
    report = report_of(f"correct_run_{name}", order)
    assert report.findings == ()
    assert report.last_error == 0
    assert report.launches[0].completed


@pytest.mark.parametrize("order", [0, 1, 5])
@pytest.mark.parametrize(("name", "code"), list(BROKEN.items()))
def test_broken_twins_are_found(report_of: Any, name: str, code: str, order: int) -> None:
    findings = report_of(f"broken_run_{name}", order).findings
    assert code in {finding.code for finding in findings}


def test_a_race_names_both_lines(report_of: Any) -> None:
    lines = SOURCE.read_text().splitlines()
    read = next(number for number, line in enumerate(lines, 1) if "int left =" in line)
    (race,) = report_of("broken_run_scan", 0).findings
    # Thread 1 reads what thread 0 has written two lines below.
    assert race.line == read
    assert f"line {read + 2}" in race.text
