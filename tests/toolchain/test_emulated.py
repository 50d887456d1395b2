"""CUDA sources as candidates write them, through the build service to modules that run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelgym.errors import ToolchainFault
from kernelgym.toolchain import emulated
from kernelgym.toolchain.build import BuildRequest, BuildResult, SourceFile
from kernelgym.toolchain.cuda import find_nvcc
from kernelgym.toolchain.emulated import Emulated
from kernelgym.toolchain.service import BuildService

RELU = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void relu_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fmaxf(x[i], 0.0f);
}

torch::Tensor relu(torch::Tensor x) {
  TORCH_CHECK(x.is_contiguous(), "x must be contiguous");
  auto y = torch::empty_like(x);
  int n = x.numel();
  relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""
RUN = """
import importlib.machinery, importlib.util, sys
import torch
name, path, function = sys.argv[1:4]
loader = importlib.machinery.ExtensionFileLoader(name, path)
module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
loader.exec_module(module)
x = torch.linspace(-1, 1, 1000)
assert torch.equal(getattr(module, function)(x), x.relu())
"""


@pytest.fixture(scope="module")
def service(
    emulated_toolchain: Emulated, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BuildService]:
    cache = tmp_path_factory.mktemp("cache")
    with BuildService(cache, jobs=2, toolchains={"emulator": emulated_toolchain}) as service:
        yield service


def request(cuda: str, *, model: str | None = None, **changes: object) -> BuildRequest:
    text = model if model is not None else f'import torch\n\nsource = r"""{cuda}"""\n'
    fields: dict[str, object] = {
        "cpp_sources": ("torch::Tensor relu(torch::Tensor x);",),
        "cuda_sources": (cuda,),
        "functions": (("relu", "relu"),),
        "files": (SourceFile("model_new.py", text),),
    }
    return BuildRequest("relu", "emulator", **{**fields, **changes})  # type: ignore[arg-type]


def run(result: BuildResult, variant: str, function: str = "relu") -> None:
    name = f"kg_{result.key[:24]}"
    command = [sys.executable, "-c", RUN, name, result.library(variant), function]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_both_variants_are_built_and_run(service: BuildService) -> None:
    result = service.build(request(RELU), timeout=120)
    assert (result.status, result.path, result.diagnostics) == ("ok", "emulator", ())
    run(result, "fast")
    run(result, "checked")
    assert service.build(request(RELU), timeout=120).cached
    binary = Path(result.library("checked")).read_bytes()
    assert b"cuda_sources[0]" in binary
    assert b"/kernelgym-" not in binary  # Places do not depend on where it was compiled.


def test_a_missing_semicolon_names_the_line(service: BuildService) -> None:
    result = service.build(request(RELU.replace("x.numel();", "x.numel()")), timeout=120)
    assert result.status == "compile_error"
    first = result.diagnostics[0]
    assert (first.file, first.line, first.severity) == ("model_new.py", 15, "error")
    assert first.excerpt.startswith("  int n = x.numel()\n")
    assert "kgemu" not in " ".join(d.text for d in result.diagnostics)


def test_an_error_in_a_kernel_names_line_and_column(service: BuildService) -> None:
    result = service.build(request(RELU.replace("fmaxf(x[i]", "fmaxf(z[i]")), timeout=120)
    (error,) = result.diagnostics
    assert (error.line, error.column) == (9, 27)
    assert error.text == "'z' was not declared in this scope"


def test_a_function_that_is_not_declared_is_named(service: BuildService) -> None:
    result = service.build(request(RELU, cpp_sources=("",)), timeout=120)
    assert result.status == "compile_error"
    assert any("'relu' was not declared" in d.text for d in result.diagnostics)
    assert all("/tmp" not in d.text for d in result.diagnostics)


def test_files_of_the_workspace_are_sources(service: BuildService) -> None:
    kernel = RELU[: RELU.index("torch::Tensor")].replace("#include <torch/extension.h>", "")
    rest = RELU[RELU.index("torch::Tensor") :]
    main = (
        '#include <torch/extension.h>\n#include "parts/kernel.cuh"\n'
        + rest
        + 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("relu", &relu); }\n'
    )
    files = (SourceFile("csrc/relu.cu", main), SourceFile("csrc/parts/kernel.cuh", kernel))
    asked = BuildRequest("relu", "emulator", sources=("csrc/relu.cu",), files=files)
    result = service.build(asked, timeout=120)
    assert result.status == "ok", result.diagnostics
    run(result, "checked")
    missing = BuildRequest("relu", "emulator", sources=("nowhere.cu",), files=files)
    result = service.build(missing, timeout=120)
    assert "'nowhere.cu'" in result.diagnostics[0].text


def test_what_the_emulator_cannot_do_is_unsupported(service: BuildService) -> None:
    cuda = RELU.replace("  if (i < n)", '  asm volatile("bar.sync 0;");\n  if (i < n)')
    result = service.build(request(cuda), timeout=120)
    assert result.status == "unsupported"
    (found,) = result.diagnostics
    assert (found.file, found.line, found.tool) == ("model_new.py", 9, "emulator")
    assert "PTX" in found.text


@pytest.mark.skipif(find_nvcc() is None, reason="nvcc is not installed")
def test_nvcc_checks_the_same_request(service: BuildService) -> None:
    report = service.check(request(RELU), "sm_90", timeout=120)
    assert report.ok, report.diagnostics
    (kernel,) = report.kernels
    assert kernel.name == "relu_kernel"
    assert kernel.spill_store_bytes == 0
    report = service.check(request(RELU.replace("x.numel();", "x.numel()")), "sm_90", timeout=120)
    assert (report.diagnostics[0].file, report.diagnostics[0].line) == ("model_new.py", 15)


def test_no_compiler_is_a_fault_that_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainFault, match=r"apt-get install g\+\+"):
        Emulated(tmp_path).identity()


def test_a_free_threaded_python_is_a_fault_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emulated.sysconfig, "get_config_var", lambda name: 1)
    with pytest.raises(ToolchainFault, match="expected a Python with the GIL"):
        Emulated(tmp_path).identity()
