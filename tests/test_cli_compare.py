"""`kernelgym compare`, on the emulator."""

import json

import pytest
from typer.testing import CliRunner

from kernelgym.cli import app
from kernelgym.cli.advice_view import advice_text
from kernelgym.cli.exits import Exit
from kernelgym.judge.advice import Advice, Step
from kernelgym.judge.verdict import from_json

REFERENCE = "import torch\n\n\ndef doubled(x):\n    return torch.relu(x) * 2\n"
KERNEL = """
#include <torch/extension.h>
__global__ void doubled_kernel(const float* x, float* y, int rows, int columns) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows)
        for (int c = 0; c < columns; ++c)
            y[r * columns + c] = 2.0f * fmaxf(x[r * columns + c], 0.0f);
}
torch::Tensor doubled(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int rows = x.size(0), columns = x.size(1);
    doubled_kernel<<<(rows + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, columns);
    return y;
}
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "ref.py").write_text(REFERENCE)
    (tmp_path / "own.cu").write_text(KERNEL)
    return [str(tmp_path / "ref.py"), str(tmp_path / "own.cu")]


def test_a_kernel_of_ones_own_gets_a_verdict_and_three_steps(files):
    command = ["compare", *files, "--shapes", "128x64", "--json", "--device", "cpu", "--draws", "2"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == Exit.CORRECT, result.output
    record = json.loads(result.stdout)
    verdict = from_json(json.dumps(record["verdict"]))
    assert verdict.correct
    assert verdict.provenance.ruleset == "kernelbench"
    assert verdict.timing.speedup_compile is not None
    advice = record["advice"]
    assert advice["modelled"] is True
    assert len(advice["steps"]) == 3
    # Each thread walks along a row, so a warp touches 32 rows at a time.
    assert "touches 32.0 sectors" in advice["steps"][0]["text"]
    shown = advice_text(
        verdict, Advice(advice["limit"], tuple(Step(**s) for s in advice["steps"]), True)
    ).plain
    assert "What bounds it (modelled by the emulator, not measured)" in shown
    assert "  1. Uncoalesced" in shown


def test_a_missing_shape_is_a_usage_error(files):
    result = CliRunner().invoke(app, ["compare", *files])
    assert result.exit_code == Exit.USAGE
    assert "--shapes x=1024x1024" in result.stderr
