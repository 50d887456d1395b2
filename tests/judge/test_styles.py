"""Ways to write a candidate that the emulator can run, and what it says of those that it cannot."""

import importlib.util
import pathlib
import tempfile

import pytest

from kernelgym.config import JudgeConfig
from kernelgym.judge import protocol
from kernelgym.judge.confinement import candidate_policy
from kernelgym.judge.process import CandidateProcess, Zygote
from kernelgym.judge.verdict import Outcome
from kernelgym.toolchain.build import SourceFile
from kernelgym.toolchain.service import BuildService
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


COMPILED_WITHOUT_A_GPU = (
    styles.TRITON_RELU
    + """
from triton.backends.compiler import GPUTarget

signature = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}
source = triton.compiler.ASTSource(relu_triton, signature, {(3,): 1024})
compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
assert compiled.asm["cubin"]
"""
)


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")
def test_triton_compiles_in_a_confined_process_through_the_service(tmp_path):
    zygote = Zygote()
    made = []
    try:
        with BuildService(tmp_path) as service:

            def build(request):
                made.append(service.build(request, timeout=60.0))
                return made[-1]

            for _ in range(2):
                scratch = pathlib.Path(tempfile.mkdtemp(dir=tmp_path))
                policy = candidate_policy(JudgeConfig(), scratch, (tmp_path,), gpu=True)
                files = (SourceFile("model_new.py", COMPILED_WITHOUT_A_GPU),)
                with CandidateProcess(zygote) as candidate:
                    candidate.setup(protocol.Setup("sm_90", "fast", str(scratch), policy))
                    candidate.attend(build, 60.0)
                    candidate.ask(protocol.Begin(), protocol.Begun)
                    answer = candidate.ask(protocol.Import(files), protocol.Imported)
                    assert isinstance(answer, protocol.Imported), answer
    finally:
        zygote.close()
    kernels = [(kernel.name, result.cached) for result in made for kernel in result.kernels]
    assert kernels == [("relu_triton", False), ("relu_triton", True)]
