"""Modelled baselines: hand-derived times of small references."""

import pytest

from kernelgym import tasks
from kernelgym.judge.baselines import (
    compile_seconds,
    eager_seconds,
    fuse_pointwise,
    reference_operators,
)
from kernelgym.judge.physics import EMULATED_DEVICE as DEVICE

HEADER = "import torch\nfrom torch import nn\nclass Model(nn.Module):\n    def forward(self, x):\n"
FOOTER = (
    "def get_inputs():\n    return [torch.rand(1000, 1000)]\n"
    "def get_init_inputs():\n    return []\n"
)
MEGABYTES_4 = 4_000_000


def calls_of(tmp_path, body):
    path = tmp_path / "reference.py"
    path.write_text(f"{HEADER}        {body}\n{FOOTER}")
    return reference_operators(tasks.load_file(path), "full", train=True)


def test_one_pointwise_operator_reads_and_writes_once(tmp_path):
    calls = calls_of(tmp_path, "return torch.relu(x)")
    expected = DEVICE.launch_seconds + 2 * MEGABYTES_4 / DEVICE.dram_bandwidth
    assert eager_seconds(DEVICE, calls) == pytest.approx(expected)
    assert compile_seconds(DEVICE, calls) == pytest.approx(expected)


def test_compile_fuses_a_pointwise_chain_into_one_launch(tmp_path):
    calls = calls_of(tmp_path, "return torch.tanh(torch.relu(x) * 2)")
    one = DEVICE.launch_seconds + 2 * MEGABYTES_4 / DEVICE.dram_bandwidth
    assert eager_seconds(DEVICE, calls) == pytest.approx(3 * one)
    assert compile_seconds(DEVICE, calls) == pytest.approx(one)


def test_what_a_fused_chain_leaves_for_later_is_written(tmp_path):
    calls = calls_of(tmp_path, "y = torch.relu(x); z = torch.tanh(y); return y.sum() + z.sum()")
    groups = fuse_pointwise(calls)
    assert [len(group) for group in groups] == [2, 1, 1, 1]
    fused = DEVICE.launch_seconds + 3 * MEGABYTES_4 / DEVICE.dram_bandwidth
    total = sum(eager_seconds(DEVICE, group) for group in groups[1:])
    assert compile_seconds(DEVICE, calls) == pytest.approx(fused + total)


def test_operators_that_read_the_same_tensor_are_fused(tmp_path):
    body = "return 0.5 * x * (1.0 + torch.tanh(0.8 * (x + 0.04 * torch.pow(x, 3.0))))"
    calls = calls_of(tmp_path, body)
    assert len(calls) == 8
    one = DEVICE.launch_seconds + 2 * MEGABYTES_4 / DEVICE.dram_bandwidth
    assert compile_seconds(DEVICE, calls) == pytest.approx(one)


def test_a_product_is_bound_by_its_arithmetic(tmp_path):
    calls = calls_of(tmp_path, "return x @ x")
    expected = DEVICE.launch_seconds + 2 * 1000**3 / DEVICE.fp32_rate
    assert eager_seconds(DEVICE, calls) == pytest.approx(expected)


def test_views_cost_nothing(tmp_path):
    assert calls_of(tmp_path, "return x.t()[:10].unsqueeze(0)") == ()
