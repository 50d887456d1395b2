"""How long builds and verdicts take on the emulator. `make bench` saves the figures.

Every round compiles a source never seen before (a constant differs), with the service warm: its
runtime and precompiled headers built, its standby process running.
"""

import itertools
import secrets

import pytest

from kernelgym.config import JudgeConfig
from kernelgym.judge.judge import Judge
from kernelgym.judge.verdict import Outcome
from kernelgym.toolchain.build import BuildRequest
from kernelgym.toolchain.service import BuildService

KERNEL = """
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void relu_kernel(const float* x, float* y, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;  // {nonce}
    if (i < n) y[i] = fmaxf(x[i], 0.0f) + 0.0f * {number};
}}
torch::Tensor relu(torch::Tensor x) {{
    auto y = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}}
"""
MODEL = '''import torch
from torch.utils.cpp_extension import load_inline
ext = load_inline("relu", "torch::Tensor relu(torch::Tensor x);", r"""{kernel}""", functions=["relu"])
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.relu(x)
'''
numbers = itertools.count(1)


def unseen_kernel():
    return KERNEL.format(nonce=secrets.token_hex(8), number=next(numbers))


@pytest.fixture(scope="module")
def service():
    with BuildService() as service:
        service.emulator()
        yield service


@pytest.fixture(scope="module")
def judge(service):
    with Judge(JudgeConfig(device="cpu"), service=service) as judge:
        judge.evaluate("L1/19", MODEL.format(kernel=unseen_kernel()))
        yield judge


def test_build_of_an_unseen_source(benchmark, service):
    """Goal: a median of at most 3 s on two cores."""

    def request():
        declaration = "torch::Tensor relu(torch::Tensor x);"
        source = BuildRequest(
            name="relu",
            target="emulator",
            cpp_sources=(declaration,),
            cuda_sources=(unseen_kernel(),),
            functions=(("relu", ""),),
        )
        return (source,), {"timeout": 60.0}

    result = benchmark.pedantic(service.build, setup=request, rounds=20)
    assert result.status == "ok"
    assert not result.cached


def test_verdict_on_an_unseen_source(benchmark, judge):
    def candidate():
        return ("L1/19", MODEL.format(kernel=unseen_kernel())), {}

    verdict = benchmark.pedantic(judge.evaluate, setup=candidate, rounds=10)
    assert verdict.outcome is Outcome.CORRECT


def test_verdict_on_a_known_source(benchmark, judge):
    source = MODEL.format(kernel=unseen_kernel())
    judge.evaluate("L1/19", source)
    verdict = benchmark.pedantic(judge.evaluate, args=("L1/19", source), rounds=10)
    assert verdict.outcome is Outcome.CORRECT
