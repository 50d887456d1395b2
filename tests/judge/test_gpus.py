"""The table of GPUs, and the floor that physics sets."""

import pytest

from kernelgym.judge.gpus import GPUS, floor_seconds, gpu_model


def test_names_are_distinct_and_rates_within_what_is_sold():
    assert len({model.name for model in GPUS}) == len(GPUS)
    for model in GPUS:
        assert 1e11 < model.dram_bandwidth < 1e13
        assert 5e12 < model.fp32_rate < 2e14
        assert 20 <= model.multiprocessors <= 200


@pytest.mark.parametrize("model", GPUS, ids=lambda model: model.name)
def test_the_fp32_rate_is_two_per_lane_and_cycle(model):
    """FLOP/s = 2 x lanes x clock, with 64 or 128 lanes in a multiprocessor."""
    lanes = model.fp32_rate / (2 * model.multiprocessors * model.clock)
    assert min(abs(lanes / 64 - 1), abs(lanes / 128 - 1)) < 0.05


def test_an_h200_moves_48_gb_in_10_ms_and_an_unknown_gpu_has_no_model():
    h200 = gpu_model("NVIDIA H200")
    assert h200 is not None
    assert floor_seconds(h200, 48e9, 0) == pytest.approx(10e-3)
    assert gpu_model("NVIDIA H900") is None


def test_what_fits_into_l2_has_no_floor():
    h200 = gpu_model("NVIDIA H200")
    assert floor_seconds(h200, 50e6, 60e6) == 0.0
