"""PyTorch's own rows, and what others have published."""

from __future__ import annotations

import dataclasses

import pytest

from kernelgym.errors import RecordError
from kernelgym.judge.baseline_store import BaselineRecord, Setting
from kernelgym.judge.verdict import Speedup
from kernelgym.leaderboard import synthetic
from kernelgym.leaderboard.board import EMULATOR, Board, Budget
from kernelgym.leaderboard.loading import load_entry
from kernelgym.leaderboard.reference_rows import (
    modelled_rows,
    rows_of_records,
    stored_boards,
    stored_rows,
)
from kernelgym.leaderboard.reported import load_reported
from kernelgym.leaderboard.scores import score_entry

BOARD = synthetic.BOARD
SETTING = Setting("NVIDIA H200", torch="2.11.0", driver="580.1")


def record(task="L1/19", kind="eager", median=1e-3, ratio=None, **fields) -> BaselineRecord:
    fields = {
        "size": "full",
        "mode": "train",
        "precision": "default",
        "setting": SETTING,
        "low": None if median is None else median * 0.9,
        "high": None if median is None else median * 1.1,
        **fields,
    }
    return BaselineRecord(
        task=task,
        kind=kind,
        source="0",
        date="2026-12-01",
        kernelgym="0.1.0",
        median=median,
        ratio=ratio,
        **fields,
    )


def by_task(row):
    return {t.task: t for t in row.scores.tasks if t.outcome is not None}


def test_eager_and_compile_have_a_row_each():
    rows = rows_of_records(
        BOARD,
        [
            record(),
            record(kind="compile", median=0.5e-3, ratio=Speedup(0.5, 0.4, 0.625)),
            record("L2/76"),
        ],
    )
    eager, compiled = rows
    assert (eager.name, compiled.name) == ("PyTorch eager", "torch.compile")
    assert eager.versions == (("torch", "2.11.0"), ("driver", "580.1"))
    assert by_task(eager)["L1/19"].compile == Speedup(0.5, 0.4, 0.625)
    assert by_task(eager).keys() == {"L1/19", "L2/76"}
    assert by_task(compiled).keys() == {"L1/19"}
    assert by_task(compiled)["L1/19"].eager == Speedup(2.0, 1.6, 2.5)
    assert compiled.scores.raw["all"].eager.geomean_all.value == 2.0
    assert eager.scores.raw["all"].eager.geomean_all.value == 1.0
    assert (eager.scores.raw["all"].tasks, compiled.scores.raw["all"].tasks) == (2, 1)
    assert len(eager.scores.tasks) == 250
    assert compiled.scores.raw.keys() == {"all", "L1"}


def test_records_of_other_tasks_make_no_row():
    level3 = dataclasses.replace(BOARD, task_set="level3")
    assert rows_of_records(level3, [record()]) == ()


@pytest.mark.parametrize(
    "other",
    [
        {"size": "small"},
        {"precision": "tf32"},
        {"setting": Setting("NVIDIA L4")},
        {"median": None, "error": "out of memory"},
    ],
)
def test_records_of_other_rules_make_no_row(other):
    assert rows_of_records(BOARD, [record(**other)]) == ()


@pytest.mark.parametrize(("protocol", "median"), [("audited", 1e-3), ("cuda_agent", 2e-3)])
def test_the_mode_is_the_protocols(protocol, median):
    board = Board("NVIDIA H200", protocol, "strict", "default", "kernelbench", "full", Budget.ONE)
    records = [record(), record(mode="eval", median=2e-3), record("L3/9", mode="eval", median=3e-3)]
    (eager,) = rows_of_records(board, records)
    assert by_task(eager)["L1/19"].seconds.median == median
    assert by_task(eager)["L3/9"].seconds.median == 3e-3


def test_kinds_of_one_task_are_of_one_mode():
    compiled = record(kind="compile", mode="eval", ratio=Speedup(0.5, 0.5, 0.5))
    rows = rows_of_records(BOARD, [record(), compiled])
    assert [row.kind for row in rows] == ["eager"]


def test_the_store_that_comes_with_kernelgym_has_the_h200():
    assert "NVIDIA H200" in {board.device for board in stored_boards()}
    eager, compiled = stored_rows(BOARD)
    for row in (eager, compiled):
        assert row.source == "measured"
        assert row.scores.raw["L1"].tasks == 100
    # Compiling helps, on the whole; and what is divided by what is not mixed up.
    assert compiled.scores.raw["L1"].eager.geomean_all.low > 1.0
    assert eager.scores.raw["L1"].compile.geomean_all.high < 1.0
    unknown = Board("NVIDIA X1", "audited", "strict", "default", "level1", "full", Budget.ONE)
    assert stored_rows(unknown) == ()


def test_modelled_rows_come_from_verdicts(tmp_path):
    board = Board(EMULATOR, "audited", "strict", "default", "level1", "small", Budget.TEN)
    entry = load_entry(
        synthetic.write_synthetic(tmp_path, "a", 1, board=board, tasks=("L1/19", "L1/23"))
    )
    eager, compiled = modelled_rows(board, [score_entry(entry)])
    timing = entry.results[0].verdict.timing
    ratio = timing.eager.median / timing.compile.median
    assert compiled.source == "modelled"
    assert by_task(compiled)["L1/19"].eager.value == pytest.approx(ratio)
    assert by_task(eager)["L1/19"].seconds.median == pytest.approx(timing.eager.median)
    assert modelled_rows(board, []) == ()


# --- published figures ---------------------------------------------------------------------------


def test_published_figures_add_up():
    reported = load_reported()
    weights = {"L1": 0.4, "L2": 0.4, "L3": 0.2}
    whole = [system for system in reported.systems if system.protocol == "cuda_agent"]
    assert len(whole) == 6
    for system in whole:
        shares = {figures.tasks: figures for figures in system.results}
        for name in ("correct", "faster_eager", "faster_compile"):
            weighted = sum(getattr(shares[level], name) * w for level, w in weights.items())
            assert getattr(shares["all"], name) == pytest.approx(weighted), system.name
    for protocol in reported.protocols.values():
        assert protocol.source.startswith("https://")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("schema_version: 1", "schema_version: 2", "expected 1, got 2"),
        ("correct: 0.988", "correct: 98.8", "expected a share from 0 to 1, got 98.8"),
        ("protocol: kevin", "protocol: keven", "got 'keven'"),
        ("tasks: all, ", "", "missing required field `tasks`"),
    ],
)
def test_broken_figures_are_named(tmp_path, old, new, message):
    from kernelgym.leaderboard.reported import REPORTED

    path = tmp_path / "reported.yaml"
    path.write_text(REPORTED.read_text().replace(old, new, 1))
    with pytest.raises(RecordError, match=message):
        load_reported(path)
