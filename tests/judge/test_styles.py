"""Ways to write a candidate that the emulator can run, and what it says of those that it cannot."""

import pytest

from kernelgym.judge.verdict import Outcome
from tests.judge import styles


@pytest.mark.parametrize("style", ["CUDA_AGENT", "CUSTOM_OPERATOR", "LIBRARY_IMPL", "LOADED_FILES"])
def test_a_style_in_cuda_is_right_and_own(judge, style):
    verdict = judge.evaluate("L1/19", getattr(styles, style))
    assert verdict.outcome is Outcome.CORRECT, (verdict.reason, verdict.message)
    assert verdict.coverage.own == 1.0


def test_torch_inside_a_custom_operator_is_refused(judge):
    verdict = judge.evaluate("L1/19", styles.CUSTOM_OPERATOR_THAT_HIDES_ATEN)
    assert (verdict.outcome, verdict.reason) == (Outcome.REJECTED, "rule.torch_compute")
    assert "clamp_min" in verdict.message


def test_a_method_that_computes_in_cpp_is_refused_before_it_is_built(judge):
    verdict = judge.evaluate("L1/19", styles.CPP_METHOD_THAT_COMPUTES)
    assert (verdict.outcome, verdict.reason) == (Outcome.REJECTED, "rule.torch_compute")
    assert verdict.build is None
    assert verdict.diagnostics[0].file == "relu.cu"


@pytest.mark.parametrize(
    ("style", "package"),
    [
        ("TRITON_RELU", "triton"),
        ("CUPY_RAW_KERNEL", "cupy"),
        ("PYCUDA_SOURCE_MODULE", "pycuda"),
    ],
)
def test_a_package_that_needs_a_gpu_is_named_with_what_to_do(judge, style, package):
    verdict = judge.evaluate("L1/19", getattr(styles, style))
    assert (verdict.outcome, verdict.reason) == (Outcome.UNSUPPORTED, "emulator.unsupported")
    assert f"'{package}'" in verdict.message
    assert "CUDA C++" in verdict.message
    line = getattr(styles, style).splitlines()[verdict.diagnostics[0].line - 1]
    assert line.startswith(f"import {package}")
