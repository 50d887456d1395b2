"""A card's calibration: its file, the rates and the spread that follow from it."""

import dataclasses
import random

import pytest

from kernelgym.errors import ConfigError, RecordError
from kernelgym.judge import calibration
from kernelgym.judge.baseline_store import Setting
from kernelgym.judge.calibration import Calibration, Ceilings, Run, light_model, load, save
from kernelgym.judge.calibration import spread_of as spread
from kernelgym.judge.ceilings import as_table
from kernelgym.judge.gpus import gpu_model
from kernelgym.judge.repeatability import relu_candidate, relu_task, spread_points
from kernelgym.judge.timing import UNCALIBRATED, SpreadPoint

CEILINGS = Ceilings(dram_read=4.4e12, dram_write=4.5e12, dram_copy=4.2e12, fp32=52e12)
SETTING = Setting("NVIDIA H200", "580", "13.0", "2.11.0", "3.6.0")


def found(**fields):
    made = Calibration(
        SETTING,
        "2026-12-01",
        "0.1.0",
        CEILINGS,
        spread=(SpreadPoint(3e-5, 0.001, 0.0015),),
        runs=(Run(2**20, 6e-6, 1.01),),
    )
    return dataclasses.replace(made, **fields)


def test_a_calibration_goes_to_a_file_and_back(tmp_path):
    path = save(found(), tmp_path / "devices" / "nvidia_h200.json")
    assert load("NVIDIA H200", path.parent) == found()


def test_a_card_that_nobody_has_measured_has_none(tmp_path):
    assert load("NVIDIA H900", tmp_path) is None


def test_a_file_of_something_else_is_refused(tmp_path):
    (tmp_path / "nvidia_h200.json").write_text('{"setting": 3}')
    with pytest.raises(RecordError, match="expected a calibration record"):
        load("NVIDIA H200", tmp_path)


def test_the_fastest_stream_is_the_bandwidth_and_rates_stay_the_data_sheets():
    sold = gpu_model("NVIDIA H200")
    light = light_model("NVIDIA H200", found())
    assert light == dataclasses.replace(sold, dram_bandwidth=4.5e12)
    assert light_model("NVIDIA H200", None) == sold


@pytest.mark.parametrize("dram", [1e12, 6e12])
def test_a_bandwidth_that_cannot_be_true_is_left_aside(dram):
    odd = found(ceilings=Ceilings(dram_read=dram))
    assert light_model("NVIDIA H200", odd) == gpu_model("NVIDIA H200")


def test_of_an_unknown_card_the_measured_rates_count():
    light = light_model("NVIDIA H900", found())
    assert (light.dram_bandwidth, light.fp32_rate) == (4.5e12, 52e12)
    assert light_model("NVIDIA H900", None) is None
    assert light_model("NVIDIA H900", found(ceilings=Ceilings(fp32=1e12))) is None


def test_the_spread_is_the_measured_one_or_the_default():
    assert spread(found()).of_ratio(1.0) == 0.0015
    assert spread(found(spread=())) is UNCALIBRATED
    assert spread(None) is UNCALIBRATED


def test_spread_is_the_deviation_between_runs_by_size():
    rng = random.Random(0)
    runs = [
        Run(n, seconds * rng.gauss(1, 0.003), rng.gauss(1, 0.005))
        for n, seconds in ((2**20, 6e-6), (2**28, 5e-4))
        for _ in range(400)
    ]
    points = spread_points([*runs, Run(2**24, 1e-5, 1.0)])  # of one run nothing follows
    assert [point.seconds for point in points] == pytest.approx([6e-6, 5e-4], rel=0.01)
    for point in points:
        assert point.median == pytest.approx(0.003, rel=0.15)
        assert point.ratio == pytest.approx(0.005, rel=0.15)


def test_runs_that_agree_leave_a_least_spread():
    (point,) = spread_points([Run(2**20, 1e-5, 1.0)] * 8)
    assert point.median == point.ratio == 2e-4


def test_the_known_kernel_and_its_task_are_in_kernelbenchs_form(tmp_path):
    from kernelgym.tasks import load_file

    file = tmp_path / "relu.py"
    file.write_text(relu_task(2**20))
    assert load_file(file).input_specs("full")[0].nbytes == 2**22
    assert compile(relu_candidate("int busy = 0;"), "model_new.py", "exec")
    assert "int busy = 0;" in relu_candidate("int busy = 0;")


def test_ceilings_are_told_in_units_and_what_is_not_known_is_left_out():
    shown = dict(as_table(Ceilings(dram_read=4.4e12, tf32=4e14, launch_seconds=2e-6, sm_mhz=1980)))
    assert shown == {
        "dram_read": "4400 GB/s",
        "tf32": "400.0 TFLOP/s",
        "launch_seconds": "2.00 us",
        "sm_mhz": "1980 MHz",
    }


def test_without_a_gpu_there_is_nothing_to_calibrate(monkeypatch):
    import torch

    from kernelgym.judge.calibrate import calibrate

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match="expected an NVIDIA GPU of index 0"):
        calibrate(0, 1, 1)


def test_what_is_shipped_can_be_read():
    import importlib.resources

    folder = importlib.resources.files("kernelgym.judge") / "data" / "devices"
    for file in folder.iterdir() if folder.is_dir() else ():
        assert calibration._decode(file.read_bytes(), file.name).setting.device
