"""`kernelgym baselines` and `kernelgym calibrate`, without a GPU."""

import json

import pytest
from typer.testing import CliRunner

from kernelgym.cli import app
from kernelgym.cli.exits import Exit
from kernelgym.judge.baseline_store import (
    BaselineRecord,
    Setting,
    encode_record,
    read_records,
    write_records,
)
from kernelgym.judge.verdict import Speedup

runner = CliRunner()
SETTING = Setting("NVIDIA H200", "580", "13.0", "2.11.0", "3.6.0")


def records():
    base = {
        "size": "full",
        "mode": "train",
        "precision": "default",
        "source": "aa",
        "setting": SETTING,
        "date": "2026-12-01",
        "kernelgym": "0.1.0",
        "min_bytes": 12_884_901_888,
    }
    return [
        BaselineRecord("L1/19", kind="eager", median=3.07e-3, batches=(3070.0,), **base),
        BaselineRecord(
            "L1/19", kind="compile", median=3.04e-3, ratio=Speedup(0.99, 0.98, 1.0), **base
        ),
        BaselineRecord("L2/1", kind="eager", error="out of memory", needed=10**12, **base),
    ]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "nvidia_h200.jsonl"
    write_records(path, records())
    return path


def invoke(*arguments):
    return runner.invoke(app, ["baselines", *map(str, arguments)])


def test_show_tells_times_ratios_and_ceilings(file):
    result = invoke("show", "--file", file)
    assert result.exit_code == Exit.CORRECT, result.output
    lines = result.stdout.splitlines()
    assert lines[1].split() == ["L1/19", "train", "3.07", "0.990", "1.12x", "(memory)"]
    assert "out of memory" in lines[2]
    assert lines[-1] == "all: geometric mean of the ceilings 1.12x, of eager/compile 1.01x"


def test_show_one_level_or_as_json(file):
    only = invoke("show", "--file", file, "--level", 2).stdout
    assert "L2/1" in only
    assert "L1/19" not in only
    rows = json.loads(invoke("show", "--file", file, "--json").stdout)
    assert [row["task"] for row in rows] == ["L1/19", "L2/1"]
    assert rows[0]["ratio"]["value"] == 0.99


def test_export_writes_records_and_the_page(file, tmp_path):
    out = tmp_path / "page.md"
    assert invoke("export", "--file", file, "--markdown", "--out", out).exit_code == Exit.CORRECT
    assert "| L1/19 | train | 3.07 | 0.990 [0.980, 1.000] |" in out.read_text()
    lines = invoke("export", "--file", file).stdout.encode()
    assert lines == b"".join(map(encode_record, read_records(file)))


def test_nothing_stored_is_said_and_no_gpu_too(file, monkeypatch):
    result = invoke("show", "--file", file, "--size", "small")
    assert result.exit_code == Exit.USAGE
    assert "got none" in result.stderr
    result = invoke("show", "--device", "NVIDIA H900")
    assert "expected stored baselines of NVIDIA H900" in result.stderr
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert "for there is no GPU here" in invoke("show").stderr
    assert invoke("show", "--file", file.parent / "none.jsonl").exit_code == Exit.USAGE


def test_build_needs_a_gpu_and_either_tasks_or_a_sample(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    result = invoke("build", "L1/19")
    assert result.exit_code == Exit.USAGE
    assert "expected an NVIDIA GPU of index 0" in result.stderr
    assert "got both" in invoke("build", "L1/19", "--sample", 3).stderr
    assert "expected one of" in invoke("build", "--kind", "fast").stderr


@pytest.mark.parametrize(("unfinished", "code"), [(0, Exit.CORRECT), (3, Exit.NO)])
def test_build_passes_its_options_on_and_tells_what_became_of_it(
    tmp_path, monkeypatch, unfinished, code
):
    from kernelgym.judge import baseline_build

    asked = []

    def build(options, progress):
        asked.append(options)
        progress("measuring: L1/1", 1, 2)
        return baseline_build.BuildSummary(
            tmp_path / "s.jsonl", 4, 1, 7, unfinished, (60.0, 120.0), tmp_path / "s.log"
        )

    monkeypatch.setattr(baseline_build, "build", build)
    result = invoke(
        "build", "--sample", 2, "--kind", "eager", "--limit-seconds", 300, "--workers", 3
    )
    assert result.exit_code == code, result.output
    assert asked[0].kinds == ("eager",)
    assert len(asked[0].tasks) == 2
    assert (asked[0].limit_seconds, asked[0].workers) == (300.0, 3)
    assert f"4 measured, 1 failed, 7 tasks present already, {unfinished} unfinished" in (
        result.stdout
    )
    assert "60 s compiling, 120 s measuring" in result.stdout


def test_calibrate_saves_and_tells_what_it_found(tmp_path, monkeypatch):
    from kernelgym.judge import calibrate
    from kernelgym.judge.calibration import Calibration, Ceilings, load
    from kernelgym.judge.timing import SpreadPoint

    def run(device, graders, runs, limit):
        assert (device, graders, runs, limit) == (0, 2, 5, None)
        return Calibration(
            SETTING,
            "2026-12-01",
            "0.1.0",
            Ceilings(dram_read=4.4e12),
            spread=(SpreadPoint(3e-5, 0.001, 0.0015),),
            problems=("fp8: not here",),
        )

    monkeypatch.setattr(calibrate, "calibrate", run)
    out = tmp_path / "nvidia_h200.json"
    result = runner.invoke(app, ["calibrate", "--graders", "2", "--runs", "5", "--out", str(out)])
    assert result.exit_code == Exit.NO
    assert "dram_read        4400 GB/s" in result.stdout
    assert "spread at 30.0 us: time 0.10%, speedup 0.15%" in result.stdout
    assert "fp8: not here" in result.stderr
    assert load("NVIDIA H200", tmp_path).ceilings.dram_read == 4.4e12
