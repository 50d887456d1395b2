"""Builds for a GPU: the command lines, and, where there is nvcc, real builds without a GPU."""

import pytest

from kernelgym.errors import ToolchainFault, UsageError
from kernelgym.toolchain import gpu as gpu_module
from kernelgym.toolchain.build import BuildRequest, SourceFile
from kernelgym.toolchain.cuda import find_nvcc
from kernelgym.toolchain.flags import screen_flags
from kernelgym.toolchain.gpu import Gpu, code_generation
from kernelgym.toolchain.service import BuildService

needs_nvcc = pytest.mark.skipif(find_nvcc() is None, reason="needs nvcc")

CUDA = """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
template <typename T>
__global__ void scale(const T* x, T* y, int n, T factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * factor;
}
torch::Tensor run(torch::Tensor x, double factor) {
    TORCH_CHECK(x.is_cuda(), "expected a CUDA tensor");
    auto y = torch::empty_like(x);
    int n = x.numel();
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "scale", [&] {
        scale<scalar_t><<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), n, static_cast<scalar_t>(factor));
    });
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""


def request(**fields):
    given = {
        "cpp_sources": ("torch::Tensor run(torch::Tensor x, double factor);",),
        "cuda_sources": (CUDA,),
        "functions": (("run", "run"),),
    }
    return BuildRequest("scale", "sm_90", **{**given, **fields})


@pytest.mark.parametrize(
    ("target", "flags", "expected"),
    [
        ("sm_90", (), "-gencode=arch=compute_90,code=sm_90"),
        ("sm_90", ("-arch=sm_70",), "-gencode=arch=compute_90,code=sm_90"),
        (
            "sm_90",
            ("-gencode=arch=compute_90a,code=sm_90a",),
            "-gencode=arch=compute_90a,code=sm_90a",
        ),
        ("sm_80", ("-arch=sm_90a",), "-gencode=arch=compute_80,code=sm_80"),
        ("sm_120f", (), "-gencode=arch=compute_120f,code=sm_120f"),
    ],
)
def test_code_is_generated_for_the_gpu_at_hand(target, flags, expected):
    assert code_generation(target, flags) == expected


def test_a_target_that_is_no_architecture_is_refused():
    with pytest.raises(UsageError, match="expected an architecture such as 'sm_90', got 'hopper'"):
        code_generation("hopper")


def test_without_nvcc_the_fault_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(gpu_module, "find_nvcc", lambda: None)
    with pytest.raises(ToolchainFault, match=r"pip install 'kernelgym\[cuda\]'"):
        Gpu().identity()


@needs_nvcc
def test_device_code_goes_to_nvcc_and_the_rest_to_gcc_side_by_side():
    asked = request(
        extra_cuda_cflags=("-O3", "--use_fast_math", "-arch=sm_70"),
        extra_ldflags=("-lcuda", "-ltorch", "-lm"),
    )
    plan = Gpu().plan(asked, screen_flags(asked), "kg_test")
    (variant,) = plan.variants
    host, device = variant.compiles
    assert (host.tool, device.tool) == ("g++", "nvcc")
    assert "--use_fast_math" in device.command
    assert "-arch=sm_70" not in device.command
    assert "--use_fast_math" not in host.command
    link = variant.link.command
    assert any("libcudart" in word for word in link)
    assert {"-lcuda", "-lm"} <= set(link)
    assert not any("torch" in word for word in link)


@needs_nvcc
def test_cublas_is_linked_where_a_source_calls_it():
    calls = "void f() { cublasSgemm(); }"
    for text, wanted in ((calls, True), ("cublasHandle_t handle();", True), ("int x;", False)):
        asked = request(cpp_sources=(text,))
        link = Gpu().plan(asked, screen_flags(asked), "kg_test").variants[0].link.command
        assert any("cublas" in word for word in link) is wanted


@needs_nvcc
@pytest.mark.timeout(240)
def test_a_candidate_builds_for_an_h200_and_names_its_kernels(tmp_path):
    with BuildService(tmp_path) as service:
        result = service.build(request(), timeout=120)
        assert result.status == "ok", result.diagnostics
        assert result.path == "fast"
        names = {kernel.name for kernel in result.kernels}
        assert len(names) == 2
        assert all("scale<" in name for name in names)
        assert all(kernel.registers > 0 for kernel in result.kernels)
        again = service.build(request(), timeout=120)
        assert again.cached
        assert again.kernels == result.kernels


@needs_nvcc
@pytest.mark.timeout(240)
def test_what_nvcc_refuses_is_placed_in_the_workspace(tmp_path):
    wrong = CUDA.replace("x[i] * factor", "x[i] * fctor")
    files = (SourceFile("model_new.py", f'source = r"""{wrong}"""\n'),)
    with BuildService(tmp_path) as service:
        result = service.build(request(cuda_sources=(wrong,), files=files), timeout=120)
    assert result.status == "compile_error"
    first = result.diagnostics[0]
    assert first.file == "model_new.py"
    assert "fctor" in files[0].text.splitlines()[first.line - 1]
    assert "fctor" in first.text
