"""The toolchain that compiles with NVRTC and g++; it needs NVRTC and nvcc's headers, and no GPU."""

from __future__ import annotations

import subprocess

import pytest

from kernelgym.errors import ToolchainFault
from kernelgym.toolchain.build import BuildRequest, SourceFile
from kernelgym.toolchain.gpu import Gpu
from kernelgym.toolchain.nvrtc import Nvrtc
from kernelgym.toolchain.nvrtc_client import DeviceSource
from kernelgym.toolchain.service import BuildService

DECLARED = "torch::Tensor twice(torch::Tensor x);"
TWICE = """
template <typename T, int N>
__global__ void times(const T* x, T* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * T(N);
}
torch::Tensor twice(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int n = x.numel();
  LAUNCH
  return y;
}
"""
PLAIN = "times<float, 2><<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);"


def nvrtc_is_here() -> bool:
    try:
        return Gpu().library("nvrtc") is not None
    except ToolchainFault:
        return False


pytestmark = pytest.mark.skipif(not nvrtc_is_here(), reason="there is no NVRTC, or no nvcc")


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with BuildService(tmp_path_factory.mktemp("cache"), jobs=2) as made:
        made.start("sm_90")
        yield made


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    toolchain = Nvrtc(tmp_path_factory.mktemp("kits"), Gpu())
    yield toolchain.server("sm_90")
    toolchain.close()


def built(service, launch=PLAIN, *, source=TWICE, **more):
    request = BuildRequest(
        name="twice",
        target="sm_90",
        cpp_sources=(DECLARED,),
        cuda_sources=(source.replace("LAUNCH", launch),),
        functions=(("twice", "twice"),),
        **more,
    )
    return service.build(request, timeout=100)


def test_a_candidate_is_built_without_nvcc(service):
    result = built(service)
    assert (result.status, result.path, result.why) == ("ok", "nvrtc", "")
    (kernel,) = result.kernels
    assert kernel.name == "times<float, 2>"
    assert kernel.registers > 0
    assert kernel.spill_store_bytes == 0


def test_instantiations_that_only_the_host_compiler_knows_are_made(service):
    launch = "constexpr int F = 3; " + PLAIN.replace("<float, 2>", "<float, F>")
    result = built(service, launch)
    assert result.path == "nvrtc"
    assert [kernel.name for kernel in result.kernels] == ["times<float, 3>"]


def test_dispatch_over_types_makes_each_of_them(service):
    launch = """AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "times", [&] {
      times<scalar_t, 2><<<1, 32>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), n);
    });"""
    result = built(service, launch)
    assert result.path == "nvrtc"
    assert {k.name for k in result.kernels} == {"times<float, 2>", "times<double, 2>"}


def test_attributes_and_symbols_of_the_device_are_reached(service):
    source = "__constant__ float table[4];\n" + TWICE
    launch = f"""
    float host[4] = {{0}};
    cudaMemcpyToSymbol(table, host, sizeof(host));
    cudaFuncSetAttribute(times<float, 2>, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);
    int blocks = 0;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, times<float, 2>, 256, 0);
    {PLAIN}"""
    assert built(service, launch, source=source).path == "nvrtc"


def test_headers_of_the_workspace_are_split_too(service):
    header = "#pragma once\n__device__ __forceinline__ float twofold(float v) { return __fmaf_rn(v, 2, 0); }\n"
    source = '#include "twofold.cuh"\n' + TWICE.replace("x[i] * T(N)", "twofold(x[i])")
    result = built(service, source=source, files=(SourceFile("twofold.cuh", header),))
    assert (result.status, result.path) == ("ok", "nvrtc")


def test_files_with_code_on_both_sides_are_compiled_apart_and_linked(service):
    binding = (
        "#include <torch/extension.h>\ntorch::Tensor twice(torch::Tensor x);\n"
        "static int version() { return 1; }\n"
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("twice", &twice); m.def("v", &version); }\n'
    )
    request = BuildRequest(
        name="twice",
        target="sm_90",
        sources=("binding.cpp", "kernels/twice.cu"),
        files=(
            SourceFile("binding.cpp", binding),
            SourceFile(
                "kernels/twice.cu",
                "#include <torch/extension.h>\n" + TWICE.replace("LAUNCH", PLAIN),
            ),
        ),
    )
    result = service.build(request, timeout=100)
    assert (result.status, result.path, result.why) == ("ok", "nvrtc", "")


def test_cudnns_handle_is_linked(service):
    launch = PLAIN + "\n  if (n < 0) cudnnDestroy(at::native::getCudnnHandle());"
    result = built(service, launch, source="#include <ATen/cudnn/Handle.h>\n" + TWICE)
    if result.path == "nvrtc":
        (library,) = [path for _, path in result.libraries]
        symbols = subprocess.run(["nm", "-DC", library], capture_output=True, text=True).stdout
        undefined = [line for line in symbols.splitlines() if " U " in line]
        assert not [line for line in undefined if "kgtorch" in line or "at::native" in line]


def test_what_cannot_be_split_is_left_to_nvcc(service):
    source = "#include <cub/cub.cuh>\n" + TWICE.replace("T(N)", "T(missing)")
    result = built(service, source=source)
    assert (result.status, result.path) == ("compile_error", "fast")
    assert result.why == "nvrtc: it includes <cub/cub.cuh>"


def source_of(folder, text, **more):
    (folder / "source.cu").write_text(text)
    (folder / "temporary").mkdir(exist_ok=True)
    place = str(folder / "source.cu"), str(folder), str(folder / "temporary")
    return DeviceSource(*place, "source.cu", (), ("-arch=sm_90", "-default-device"), **more)


def test_a_compiler_that_takes_too_long_is_ended_and_the_next_source_compiles(server, tmp_path):
    endless = (
        "template <int N, int M> struct P : P<N - 1, 2 * M>, P<N - 1, 2 * M + 1> {};\n"
        "template <int M> struct P<0, M> {};\n"
        "__global__ void k(long* x) { x[0] = sizeof(P<24, 1>); }"
    )
    asked = source_of(tmp_path, endless)
    compiled = server.compile(asked, timeout=2.0, protection="standard")
    assert not compiled.done
    assert "error" in compiled.log
    asked = source_of(tmp_path, "__global__ void k(int* x) { x[0] = 1; }")
    fine = server.compile(asked, timeout=30.0, protection="standard")
    assert fine.done
    assert fine.cubin.startswith(b"\x7fELF")


def test_files_of_others_cannot_be_included(server, tmp_path):
    secret = tmp_path.parent / "secret.h"
    secret.write_text("#error the-secret-is-out\n")
    text = f'#define PLACE "{secret}"\n#include PLACE\n__global__ void k() {{}}\n'
    folder = tmp_path / "own"
    folder.mkdir()
    compiled = server.compile(source_of(folder, text), timeout=20.0, protection="standard")
    assert not compiled.done
    assert "the-secret-is-out" not in compiled.log
