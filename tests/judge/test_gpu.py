"""Whole judgements on a GPU; skipped where there is none."""

import dataclasses

import pytest
import torch

from kernelgym.config import JudgeConfig
from kernelgym.judge.device import arithmetic
from kernelgym.judge.judge import Judge
from kernelgym.judge.verdict import Outcome, from_json, to_json
from kernelgym.toolchain.cuda import find_nvcc
from tests.judge.candidates import RELU_KERNEL, candidate

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available() or find_nvcc() is None, reason="needs a GPU and nvcc"
    ),
]

GOOD = candidate()


@pytest.fixture(scope="module")
def config():
    return JudgeConfig(
        device="cuda", size="small", seed=0, draws=3, run_timeout=20, baselines=("eager",)
    )


@pytest.fixture(scope="module")
def gpu(config):
    with Judge(config) as judge:
        yield judge


def test_a_right_kernel_is_correct_and_measured(gpu):
    verdict = gpu.evaluate("L1/19", GOOD)
    assert verdict.outcome is Outcome.CORRECT, (verdict.reason, verdict.message)
    timing = verdict.timing
    assert timing.candidate.source == timing.eager.source == "measured"
    assert timing.candidate.batches >= 20
    assert 0 < timing.candidate.low < timing.candidate.median < timing.candidate.high < 1e-2
    assert timing.speedup_eager.low < timing.speedup_eager.value < timing.speedup_eager.high
    assert verdict.correctness.passed == verdict.correctness.draws == 3
    assert [k.name for k in verdict.build.kernels] == ["relu_kernel"]
    assert verdict.build.kernels[0].registers > 0
    assert verdict.coverage.own > 0.99
    assert verdict.provenance.device == torch.cuda.get_device_properties(0).name
    assert from_json(to_json(verdict)) == verdict


def test_a_missing_tail_is_incorrect(gpu):
    wrong = candidate(RELU_KERNEL.replace("i < n", "i < n - 5"))
    verdict = gpu.evaluate("L1/19", wrong)
    assert verdict.outcome is Outcome.INCORRECT
    assert verdict.reason in ("check.tail", "check.not_finite")
    assert verdict.correctness.bad_elements == 5


def test_a_misspelt_function_is_a_compile_error_at_its_line(gpu):
    source = candidate(RELU_KERNEL.replace("fmaxf", "fmaxq"))
    verdict = gpu.evaluate("L1/19", source)
    assert verdict.outcome is Outcome.COMPILE_ERROR
    first = verdict.diagnostics[0]
    assert (first.tool, first.severity) == ("nvcc", "error")
    assert "fmaxq" in source.splitlines()[first.line - 1]


def test_an_illegal_address_is_a_runtime_error_and_the_next_verdict_is_right(gpu):
    wild = candidate(RELU_KERNEL.replace("y[i] =", "y[i + (1L << 40)] ="))
    verdict = gpu.evaluate("L1/19", wild)
    assert verdict.outcome is Outcome.RUNTIME_ERROR
    assert verdict.reason == "memory.out_of_bounds"
    assert gpu.evaluate("L1/19", GOOD).outcome is Outcome.CORRECT


def test_a_refused_launch_is_a_runtime_error(gpu):
    launch = """
    relu_kernel<<<(n + 4095) / 4096, 4096>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    C10_CUDA_CHECK(cudaGetLastError());
    """
    kernel = "#include <ATen/cuda/CUDAContext.h>\n" + RELU_KERNEL
    verdict = gpu.evaluate("L1/19", candidate(kernel, launch))
    assert verdict.outcome is Outcome.RUNTIME_ERROR
    assert "CUDA error: invalid" in verdict.message


def test_the_precision_class_decides_how_products_are_rounded():
    a, b = (torch.randn(512, 512, device="cuda") for _ in range(2))
    exact = a.double() @ b.double()
    errors = {}
    for precision in ("ieee", "tf32"):
        with arithmetic(precision):
            errors[precision] = float((a @ b - exact).abs().max() / exact.std())
    assert errors["ieee"] < 2e-5 < 2e-4 < errors["tf32"]


def test_an_endless_kernel_is_a_timeout_and_the_next_verdict_is_right(gpu, config):
    loop = candidate(RELU_KERNEL.replace("if (i < n)", "while (*(volatile const float*)x < 9e9f);"))
    free = torch.cuda.mem_get_info()[0]
    with Judge(dataclasses.replace(config, run_timeout=6)) as impatient:
        verdict = impatient.evaluate("L1/19", loop)
        assert (verdict.outcome, verdict.reason) == (Outcome.TIMEOUT, "run.timeout")
        assert impatient.evaluate("L1/19", GOOD).outcome is Outcome.CORRECT
    assert abs(torch.cuda.mem_get_info()[0] - free) < 512 * 2**20


def test_a_torch_operator_is_refused(gpu):
    source = candidate(forward="        return ext.run(x).add(0)")
    verdict = gpu.evaluate("L1/19", source)
    assert (verdict.outcome, verdict.reason) == (Outcome.REJECTED, "rule.torch_compute")


def test_a_detour_through_the_host_is_refused(gpu):
    source = candidate(forward="        return ext.run(x.cpu().cuda())")
    verdict = gpu.evaluate("L1/19", source)
    assert (verdict.outcome, verdict.reason) == (Outcome.REJECTED, "rule.host_compute")


def test_work_on_the_host_alone_is_no_kernel_of_ones_own(gpu):
    copies = candidate(launch="cudaMemcpy(y.data_ptr(), x.data_ptr(), 4L * n, cudaMemcpyDefault);")
    verdict = gpu.evaluate("L1/19", copies)
    assert verdict.outcome in (Outcome.INCORRECT, Outcome.REJECTED)


def test_an_output_kept_from_an_earlier_call_is_found(gpu):
    source = candidate(
        init="        self.kept = None\n        self.calls = 0",
        forward="""\
        self.calls += 1
        if self.calls > 6 and self.kept is not None:
            return self.kept
        self.kept = ext.run(x)
        return self.kept""",
    )
    verdict = gpu.evaluate("L1/19", source)
    assert verdict.outcome in (Outcome.INCORRECT, Outcome.REJECTED)
    assert verdict.reason in ("cheat.timed_output", "check.values")


MATMUL = '''
import torch
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#define T 16
__global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float as[T][T], bs[T][T];
    int row = blockIdx.y * T + threadIdx.y, column = blockIdx.x * T + threadIdx.x;
    float sum = 0.0f;
    for (int t = 0; t < k; t += T) {
        bool in_a = row < m && t + threadIdx.x < k, in_b = t + threadIdx.y < k && column < n;
        as[threadIdx.y][threadIdx.x] = in_a ? a[row * k + t + threadIdx.x] : 0.0f;
        bs[threadIdx.y][threadIdx.x] = in_b ? b[(t + threadIdx.y) * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < T; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}
torch::Tensor run(torch::Tensor a, torch::Tensor b) {
    int m = a.size(0), k = a.size(1), n = b.size(1);
    auto c = torch::empty({m, n}, a.options());
    dim3 grid((n + T - 1) / T, (m + T - 1) / T);
    matmul<<<grid, dim3(T, T), 0, at::cuda::getCurrentCUDAStream()>>>(
        a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), m, n, k);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return c;
}
"""
ext = load_inline(name="matmul", cpp_sources="torch::Tensor run(torch::Tensor, torch::Tensor);",
                  cuda_sources=source, functions=["run"])


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return ext.run(a.contiguous(), b.contiguous())
'''


def test_a_tiled_product_is_correct(gpu):
    verdict = gpu.evaluate("L1/1", MATMUL)
    assert verdict.outcome is Outcome.CORRECT, (verdict.reason, verdict.message)
    # Tiles of 16 do not beat cuBLAS, and times of such a small product are steady nevertheless.
    speedup = verdict.timing.speedup_eager
    assert 0.1 < speedup.low < speedup.high < 1.5
    assert speedup.high - speedup.low < 0.2 * speedup.value
    assert verdict.build.kernels[0].shared_bytes >= 2 * 16 * 16 * 4


GEMM_MULTIPLY_LEAKY_RELU = '''
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
__global__ void fused(const float* x, const float* w, const float* bias, float* y,
                      int rows, int in, int out, float factor, float slope) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * out) return;
    const float* a = x + (long)(i / out) * in;
    const float* b = w + (long)(i % out) * in;
    float sum = bias[i % out];
    for (int k = 0; k < in; ++k) sum += a[k] * b[k];
    sum *= factor;
    y[i] = sum > 0.0f ? sum : sum * slope;
}
torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor bias, double factor,
                  double slope) {
    int rows = x.size(0), in = x.size(1), out = w.size(0);
    auto y = torch::empty({rows, out}, x.options());
    fused<<<(rows * out + 127) / 128, 128>>>(x.data_ptr<float>(), w.data_ptr<float>(),
        bias.data_ptr<float>(), y.data_ptr<float>(), rows, in, out, factor, slope);
    return y;
}
"""
ext = load_inline(
    name="fused",
    cpp_sources="torch::Tensor run(torch::Tensor, torch::Tensor, torch::Tensor, double, double);",
    cuda_sources=source, functions=["run"])


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, multiplier, negative_slope):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.multiplier, self.slope = multiplier, negative_slope

    def forward(self, x):
        return ext.run(x, self.gemm.weight, self.gemm.bias, self.multiplier, self.slope)
'''


def test_a_fused_linear_layer_gets_the_references_weights(gpu):
    verdict = gpu.evaluate("L2/12", GEMM_MULTIPLY_LEAKY_RELU)
    assert verdict.outcome is Outcome.CORRECT, (verdict.reason, verdict.message)
    assert verdict.coverage.own > 0.99


CUBLAS = '''
import torch
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cublas_v2.h>
torch::Tensor run(torch::Tensor a, torch::Tensor b) {
    int m = a.size(0), k = a.size(1), n = b.size(1);
    auto c = torch::empty({m, n}, a.options());
    const float one = 1.0f, zero = 0.0f;
    TORCH_CUDABLAS_CHECK(cublasSgemm(at::cuda::getCurrentCUDABlasHandle(), CUBLAS_OP_N, CUBLAS_OP_N,
        n, m, k, &one, b.data_ptr<float>(), n, a.data_ptr<float>(), k, &zero,
        c.data_ptr<float>(), n));
    return c;
}
"""
ext = load_inline(name="product", cpp_sources=source, functions=["run"], with_cuda=True)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return ext.run(a.contiguous(), b.contiguous())
'''


def test_cublas_called_from_cpp_counts_as_library(gpu):
    verdict = gpu.evaluate("L1/1", CUBLAS)
    assert verdict.outcome is Outcome.CORRECT, (verdict.reason, verdict.message)
    assert verdict.coverage.library > 0.9


# Of torch's own, under its compiler.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_the_compiled_baseline_is_measured_on_request(config):
    both = dataclasses.replace(config, baselines=("eager", "compile"))
    with Judge(both) as judge:
        timing = judge.evaluate("L1/19", GOOD).timing
    assert timing.compile.source == "measured"
    assert timing.speedup_compile.value > 0
