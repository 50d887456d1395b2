"""The model prefers what hardware prefers."""

import pytest

from kernelgym.judge.physics import EMULATED_DEVICE as DEVICE
from kernelgym.judge.physics import kernel_seconds, light_seconds


def counts(**values):
    base = {
        "dram_bytes_read": 4e6,
        "dram_bytes_written": 4e6,
        "sectors": 250_000,
        "requests": 62_500,
    }
    return {**base, **values}


def test_a_coalesced_kernel_runs_at_the_memorys_speed():
    expected = DEVICE.launch_seconds + 8e6 / DEVICE.dram_bandwidth
    assert kernel_seconds(DEVICE, 4000, counts()) == pytest.approx(expected)


def test_a_strided_kernel_is_slower_than_a_coalesced_one():
    strided = counts(sectors=8 * 250_000)
    assert kernel_seconds(DEVICE, 4000, strided) > 2 * kernel_seconds(DEVICE, 4000, counts())


def test_bank_conflicts_cost_time_where_shared_memory_is_the_limit():
    free = counts(shared_wavefronts=2e6)
    conflicting = counts(shared_wavefronts=32 * 2e6)
    ratio = kernel_seconds(DEVICE, 4000, conflicting) / kernel_seconds(DEVICE, 4000, free)
    assert ratio > 16


def test_one_block_does_not_use_the_whole_device():
    assert kernel_seconds(DEVICE, 1, counts()) > 3 * kernel_seconds(DEVICE, 4, counts())


def test_one_fused_kernel_beats_two():
    fused = kernel_seconds(DEVICE, 4000, counts())
    assert 2 * kernel_seconds(DEVICE, 4000, counts()) > 1.9 * fused


def test_light_is_the_larger_of_bytes_and_flops():
    assert light_seconds(DEVICE, 1e12, 0) == pytest.approx(1.0)
    assert light_seconds(DEVICE, 0, DEVICE.dram_bandwidth) == pytest.approx(1.0)


def test_few_warps_wait_for_memory():
    many = counts(warps=31_250)
    few = counts(warps=4)
    assert kernel_seconds(DEVICE, 4, few) > 3 * kernel_seconds(DEVICE, 4, many)
