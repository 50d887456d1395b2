"""The table of GPUs, and the floor that physics sets."""

import pytest

from kernelgym.judge.gpus import (
    GPUS,
    Work,
    floor_seconds,
    gpu_model,
    light_of,
    with_bandwidth,
)


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


@pytest.mark.parametrize("model", GPUS, ids=lambda model: model.name)
def test_narrower_types_are_not_slower_and_an_l2_is_some_megabytes(model):
    assert model.fp16_rate >= max(model.tf32_rate, model.fp32_rate)
    assert model.fp8_rate == 0 or model.fp8_rate >= 2 * model.fp16_rate * 0.99
    assert 0 < model.fp64_rate < model.fp16_rate
    assert 4 * 2**20 <= model.l2_bytes <= 128 * 2**20


@pytest.mark.parametrize(
    ("precision", "products", "convolutions"),
    [
        ("default", 989.5e12 / 3, 989.5e12),
        ("ieee", 989.5e12 / 3, 989.5e12 / 3),
        ("tf32", 989.5e12, 989.5e12),
        ("fp16", 989.5e12, 989.5e12),
        ("bf16", 989.5e12, 989.5e12),
    ],
)
def test_the_precision_class_decides_which_arithmetic_is_the_fastest(
    precision, products, convolutions
):
    h200 = gpu_model("NVIDIA H200")
    assert light_of(h200, Work(0, 1e15, 0), precision).arithmetic == pytest.approx(1e15 / products)
    found = light_of(h200, Work(0, 0, 1e15), precision).arithmetic
    assert found == pytest.approx(1e15 / convolutions)


def test_without_fast_halves_products_run_in_fp32():
    h3090 = gpu_model("NVIDIA GeForce RTX 3090")
    found = light_of(h3090, Work(0, 1e12, 0), "default")
    assert found.arithmetic == pytest.approx(1e12 / (142e12 / 3))
    v100 = gpu_model("Tesla V100-SXM2-32GB")
    assert light_of(v100, Work(0, 1e12, 0), "tf32").arithmetic == pytest.approx(1e12 / 125e12)


def test_light_is_the_longer_of_traffic_and_arithmetic():
    h200 = gpu_model("NVIDIA H200")
    found = light_of(h200, Work(4.8e9, 1e9, 0), "default")
    assert found.seconds == found.traffic == pytest.approx(1e-3)
    assert light_of(h200, Work(1, 1e15, 0), "default").seconds > 1


def test_a_measured_bandwidth_takes_the_data_sheets_place():
    h200 = with_bandwidth(gpu_model("NVIDIA H200"), 4e12)
    assert light_of(h200, Work(4e12), "default").traffic == pytest.approx(1.0)
