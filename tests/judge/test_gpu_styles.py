"""Every way to write a candidate, judged on a GPU; skipped where there is none."""

import importlib.util

import pytest
import torch

from kernelgym.config import JudgeConfig
from kernelgym.judge.judge import Judge
from kernelgym.judge.verdict import Outcome
from kernelgym.toolchain.cuda import find_nvcc
from tests.judge import styles

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available() or find_nvcc() is None, reason="needs a GPU and nvcc"
    ),
]


def needs(package):
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"needs {package}")


@pytest.fixture(scope="module")
def gpu():
    config = JudgeConfig(
        device="cuda", size="small", seed=0, draws=2, run_timeout=90, baselines=("eager",)
    )
    with Judge(config) as judge:
        yield judge


def told(verdict):
    """What helps to understand a verdict that was not expected."""
    kernels = [(k.name, k.owner) for k in verdict.counters.kernels] if verdict.counters else []
    return (verdict.reason, verdict.message, verdict.diagnostics, verdict.output, kernels)


OWN = {
    "triton": ("L1/19", styles.TRITON_RELU, "relu_triton"),
    "triton_autotune": ("L1/19", styles.TRITON_AUTOTUNED, "relu_autotuned"),
    "triton_dot": ("L1/1", styles.TRITON_PRODUCT, "product_triton"),
    "triton_custom_op": ("L1/19", styles.TRITON_IN_CUSTOM_OPERATOR, "relu_triton"),
    "cupy_kernel": ("L1/19", styles.CUPY_RAW_KERNEL, "relu_cupy"),
    "cupy_module": ("L1/1", styles.CUPY_RAW_MODULE, "product_cupy"),
    "pycuda": ("L1/19", styles.PYCUDA_SOURCE_MODULE, "relu_pycuda"),
    "custom_op": ("L1/19", styles.CUSTOM_OPERATOR, "relu_launched"),
    "library_impl": ("L1/19", styles.LIBRARY_IMPL, "relu_launched"),
    "load": ("L1/19", styles.LOADED_FILES, "relu_loaded"),
    "cuda_agent": ("L1/19", styles.CUDA_AGENT, "relu_kernel_impl"),
}


@pytest.mark.parametrize(
    "style",
    [
        pytest.param(style, marks=needs(style.split("_")[0]))
        if style.split("_")[0] in ("triton", "cupy", "pycuda")
        else style
        for style in OWN
    ],
)
def test_own_kernels_are_right_and_own(gpu, style):
    task, files, kernel = OWN[style]
    verdict = gpu.evaluate(task, files)
    assert verdict.outcome is Outcome.CORRECT, told(verdict)
    assert verdict.coverage.own > 0.99, told(verdict)
    assert any(kernel in row.name for row in verdict.counters.kernels), told(verdict)


@needs("triton")
def test_a_triton_kernel_is_assembled_by_the_build_service_once(gpu):
    source = styles.TRITON_RELU.replace("relu_triton", "relu_assembled")
    first = gpu.evaluate("L1/19", source)
    # Triton may specialise it again for the smaller shape.
    assert {kernel.name for kernel in first.build.kernels} == {"relu_assembled"}, told(first)
    assert first.build.kernels[0].registers > 0
    again = gpu.evaluate("L1/19", source)
    assert again.outcome is Outcome.CORRECT, told(again)
    assert again.build.cached


@needs("triton")
def test_a_mistake_in_triton_is_a_compile_error_at_its_line(gpu):
    verdict = gpu.evaluate("L1/19", styles.TRITON_MISTAKE)
    assert verdict.outcome is not Outcome.CORRECT
    assert (verdict.outcome, verdict.reason) == (Outcome.COMPILE_ERROR, "build.compile"), told(
        verdict
    )


@needs("pycuda")
def test_a_mistake_in_pycuda_is_a_compile_error_that_names_it(gpu):
    verdict = gpu.evaluate("L1/19", styles.PYCUDA_MISTAKE)
    assert (verdict.outcome, verdict.reason) == (Outcome.COMPILE_ERROR, "build.compile"), told(
        verdict
    )
    assert "fmaxq" in verdict.message, told(verdict)


@needs("cupy")
def test_an_operator_of_cupys_is_no_work_of_ones_own(gpu):
    verdict = gpu.evaluate("L1/19", styles.CUPY_OPERATOR)
    assert verdict.outcome is Outcome.REJECTED, told(verdict)
    assert verdict.reason in ("rule.no_own_kernel", "rule.hidden_compute"), told(verdict)


def test_torch_inside_a_custom_operator_is_refused(gpu):
    verdict = gpu.evaluate("L1/19", styles.CUSTOM_OPERATOR_THAT_HIDES_ATEN)
    assert (verdict.outcome, verdict.reason) == (Outcome.REJECTED, "rule.torch_compute"), told(
        verdict
    )


def test_a_method_that_computes_in_cpp_is_refused_at_its_line_before_it_is_built(gpu):
    verdict = gpu.evaluate("L1/19", styles.CPP_METHOD_THAT_COMPUTES)
    assert (verdict.outcome, verdict.reason) == (Outcome.REJECTED, "rule.torch_compute")
    assert verdict.build is None
    first = verdict.diagnostics[0]
    line = styles.CPP_METHOD_THAT_COMPUTES[first.file].splitlines()[first.line - 1]
    assert "clamp_min" in line


def test_cudnn_called_from_cpp_counts_as_library(gpu):
    verdict = gpu.evaluate("L1/19", styles.CUDNN_RELU)
    assert verdict.outcome is Outcome.CORRECT, told(verdict)
    assert verdict.coverage.library > 0.9, told(verdict)


@pytest.mark.slow
def test_what_the_stand_in_lacks_goes_through_torchs_own_headers(gpu):
    verdict = gpu.evaluate("L1/19", styles.REAL_HEADERS)
    assert verdict.outcome is Outcome.CORRECT, told(verdict)
    assert verdict.build.path == "torch"
    assert "storage" in verdict.build.why
    assert verdict.coverage.own > 0.99, told(verdict)
