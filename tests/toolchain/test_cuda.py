"""nvcc's errors and its assembler's figures, without a GPU."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from kernelgym.errors import ToolchainFault
from kernelgym.toolchain import cuda
from kernelgym.toolchain.build import KernelResources, SourceFile
from kernelgym.toolchain.cuda import NvccReport, check_with_nvcc, find_nvcc, parse_resources
from kernelgym.toolchain.sourcemap import SourceMap

needs_nvcc = pytest.mark.skipif(find_nvcc() is None, reason="nvcc is not installed")

KERNELS = r"""
#include "tile.cuh"
template <typename T> __global__ void stage(const T* x, T* y, int n) {
  __shared__ T s[TILE];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  s[threadIdx.x % TILE] = x[i];
  __syncthreads();
  if (i < n) y[i] = s[(i + 1) % TILE];
}
template __global__ void stage<float>(const float*, float*, int);
__global__ void nothing(int) {}
"""


def check(text: str, **options: object) -> NvccReport:
    model = f'import torch\ncuda_source = r"""{text}"""\n'
    files = [SourceFile("model_new.py", model), SourceFile("tile.cuh", "#define TILE 64\n")]
    return check_with_nvcc(
        {"cuda.cu": '#line 1 "cuda_sources[0]"\n' + text},
        "sm_90",
        source_map=SourceMap(files),
        sources={"cuda_sources[0]": text},
        files=files,
        **options,  # type: ignore[arg-type]
    )


@needs_nvcc
def test_resources_per_kernel() -> None:
    report = check(KERNELS)
    assert report.ok, report.diagnostics
    kernels = {kernel.name: kernel for kernel in report.kernels}
    assert set(kernels) == {"stage<float>", "nothing"}
    assert kernels["stage<float>"].shared_bytes == 256
    assert kernels["nothing"].shared_bytes == 0
    assert 0 < (kernels["nothing"].registers or 0) <= (kernels["stage<float>"].registers or 0)
    assert kernels["nothing"].spill_store_bytes == 0


@needs_nvcc
def test_errors_point_into_the_model() -> None:
    report = check("\n__global__ void k(float* x) {\n  x[0] = missing_name;\n}\n")
    assert not report.ok
    (error,) = report.diagnostics
    assert (error.file, error.line, error.column, error.tool) == ("model_new.py", 4, 10, "nvcc")
    assert error.text == 'identifier "missing_name" is undefined'


@needs_nvcc
def test_what_only_the_assembler_refuses_is_an_error() -> None:
    text = "\n__global__ void k(float* x) { __shared__ float s[99999]; s[threadIdx.x] = *x; *x = s[7]; }"
    report = check(text)
    assert not report.ok
    assert "too much shared data" in report.diagnostics[0].text


@needs_nvcc
def test_folders_of_headers_come_first(tmp_path: Path) -> None:
    folder = tmp_path / "include"
    folder.mkdir()
    (folder / "tile.cuh").write_text("#define TILE 128\n")
    (folder / "algorithm").write_text("#define OURS 1\n")
    text = '#include <tile.cuh>\n#include <algorithm>\nstatic_assert(TILE == 128 && OURS, "");\n'
    assert check(text, include_dirs=[str(folder)], protection="basic").ok


@needs_nvcc
def test_flags_of_the_candidate_count_but_not_its_architecture() -> None:
    text = '\nstatic_assert(N == 4 && __cplusplus > 201703L, "");\n'
    text += "__global__ void k(float* x) {\n#if __CUDA_ARCH__ != 900\n#error\n#endif\n}\n"
    flags = ["-DN=4", "-std=c++20", "-arch=sm_80", "-gencode=arch=compute_80,code=sm_80"]
    assert check(text, flags=flags).ok


@needs_nvcc
def test_nvcc_is_confined() -> None:
    report = check('\n#include "/etc/passwd"\n')
    assert not report.ok
    assert "root" not in " ".join(diagnostic.text for diagnostic in report.diagnostics)


@needs_nvcc
def test_an_architecture_that_nvcc_does_not_know_is_a_fault() -> None:
    with pytest.raises(ToolchainFault, match="does not know sm_10"):
        check_with_nvcc({"a.cu": ""}, "sm_10", source_map=SourceMap([]))


def test_no_nvcc_is_a_fault_that_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "find_nvcc", lambda: None)
    with pytest.raises(ToolchainFault, match="pip install"):
        check_with_nvcc({"a.cu": ""}, "sm_90", source_map=SourceMap([]))


@pytest.mark.parametrize("architecture", ["sm90", "", "sm_90 -o x", "compute_90", "--help"])
def test_an_architecture_has_a_form(architecture: str) -> None:
    with pytest.raises(ValueError, match="architecture"):
        check_with_nvcc({"a.cu": ""}, architecture, source_map=SourceMap([]))


def test_units_stay_in_their_folder() -> None:
    with pytest.raises(ValueError, match="inside the workspace"):
        check_with_nvcc({"../a.cu": ""}, "sm_90", source_map=SourceMap([]), nvcc="/bin/true")


def test_nvcc_of_a_wheel_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvcc = tmp_path / "nvidia" / "cu13" / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text("#!/bin/sh\n")
    nvcc.chmod(nvcc.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(cuda.shutil, "which", lambda name: None)
    monkeypatch.setattr(cuda.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(cuda.sysconfig, "get_path", lambda name: os.fspath(tmp_path))
    assert find_nvcc() == str(nvcc)


def test_resources_are_read_from_the_assemblers_text() -> None:
    text = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1kPf' for 'sm_90'
ptxas info    : Function properties for _Z1kPf
    400 bytes stack frame, 16 bytes spill stores, 32 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 400 bytes cumulative stack size, 256 bytes \
smem, 380 bytes cmem[0], 8 bytes cmem[2]
ptxas info    : Function properties for _Z6helperf
    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
"""
    assert parse_resources(text) == (
        KernelResources(
            "_Z1kPf", 255, 16, 32, shared_bytes=256, local_bytes=400, constant_bytes=388
        ),
    )
