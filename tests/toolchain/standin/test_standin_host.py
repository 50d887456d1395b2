"""The headers as a build for a GPU has them, tried on what needs no GPU: tensors of the CPU."""

import pathlib
import shutil
import subprocess

import pytest
import torch

import kernelgym.toolchain

SOURCE = """
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>
static std::vector<torch::Tensor> made(torch::Tensor x) {
  return {torch::empty(x.sizes(), x.options()), torch::zeros({2, 3}), torch::ones_like(x),
          torch::full({2}, 4, torch::kInt), torch::empty_strided({2, 3}, {1, 2}, x.options()),
          torch::arange(3), x.contiguous(), x.clone(), x.to(torch::kDouble), torch::empty_like(x),
          torch::tensor({1, 2, 3})};
}
static std::string place(torch::Tensor x) {
  return c10::str(x.device(), " ", x.is_cuda(), " ", x.is_cpu(), " ", x.options().device());
}
static torch::Tensor to_gpu(torch::Tensor x) { return x.to(torch::kCUDA); }
static auto sum = [](auto... values) { return (values + ...); };
template <typename T>
concept Number = std::is_arithmetic_v<T>;
static double modern(double a) { return sum(a, []<Number T>(T t) { return t * 2; }(a)); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("made", &made);
  m.def("place", &place);
  m.def("to_gpu", &to_gpu);
  m.def("modern", &modern);
}
"""


@pytest.fixture(scope="module")
def ext(build):
    # torch's own builds are C++20.
    return build("standin_host", SOURCE, flags=("-std=c++20",))


def test_tensors_come_from_torchs_own_allocator(ext, runtime):
    before = runtime.fake_blocks()
    x = torch.randn(4, 3).t()
    got = ext.made(x)
    assert runtime.fake_blocks() == before
    want = [
        torch.empty(3, 4),
        torch.zeros(2, 3),
        torch.ones_like(x),
        torch.full((2,), 4, dtype=torch.int32),
        torch.empty_strided((2, 3), (1, 2)),
        torch.arange(3),
        x.contiguous(),
        x.clone(),
        x.double(),
        torch.empty_like(x),
        torch.tensor([1, 2, 3]),
    ]
    written = [1, 2, 3, 5, 6, 7, 8, 10]
    for index, (g, w) in enumerate(zip(got, want, strict=True)):
        assert (g.shape, g.stride(), g.dtype) == (w.shape, w.stride(), w.dtype)
        if index in written:
            assert torch.equal(g, w)


def test_a_tensor_of_the_cpu_says_so(ext):
    assert ext.place(torch.zeros(1)) == "cpu 0 1 cpu"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_torchs_error(ext):
    with pytest.raises((RuntimeError, AssertionError), match="CUDA"):
        ext.to_gpu(torch.zeros(1))


def test_the_language_is_that_of_torchs_own_builds(ext):
    assert ext.modern(2.0) == 6.0


DEVICE = """
#include <torch/extension.h>
#include <ATen/OpMathType.h>
#include <ATen/cuda/Atomic.cuh>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
template <typename scalar_t>
__global__ void scale(torch::PackedTensorAccessor32<scalar_t, 1, torch::RestrictPtrTraits> x,
                      scalar_t* y, float* total, int n) {
  CUDA_KERNEL_LOOP(i, n) {
    const at::opmath_type<scalar_t> v = x[i];
    y[i] = x[i] * static_cast<scalar_t>(2) + static_cast<scalar_t>(v);
    if (y[i] > scalar_t(0) && x[i] < 9.0f) gpuAtomicAdd(total, static_cast<float>(y[i]));
  }
}
__global__ void native(const __half* x, __half* y) { y[0] = __hadd(x[0], at::Half(1.0f)); }
torch::Tensor f(torch::Tensor x) {
  const at::cuda::OptionalCUDAGuard guard(device_of(x));
  auto y = torch::empty_like(x);
  auto total = torch::zeros({1}, x.options().dtype(torch::kFloat));
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "scale", [&] {
    scale<scalar_t><<<1, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.packed_accessor32<scalar_t, 1, torch::RestrictPtrTraits>(), y.data_ptr<scalar_t>(),
        total.data_ptr<float>(), x.numel());
  });
  if (x.scalar_type() == at::kHalf)
    native<<<1, 1>>>(reinterpret_cast<const __half*>(x.data_ptr<at::Half>()),
                     reinterpret_cast<__half*>(y.data_ptr<at::Half>()));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  TORCH_CHECK(at::cuda::getCurrentCUDABlasHandle() != nullptr);
  return y;
}
"""


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")
def test_nvcc_takes_the_headers(tmp_path):
    source = tmp_path / "device.cu"
    source.write_text(DEVICE)
    root = pathlib.Path(kernelgym.toolchain.__file__).parent / "include" / "torch"
    command = ["nvcc", "-std=c++17", "-arch=sm_90", "-Xcompiler", "-fPIC", "-c", source]
    # torch.utils.cpp_extension passes these.
    command += ["-D__CUDA_NO_HALF_OPERATORS__", "-D__CUDA_NO_HALF_CONVERSIONS__"]
    command += ["-D__CUDA_NO_BFLOAT16_CONVERSIONS__", "-D__CUDA_NO_HALF2_OPERATORS__"]
    command += [f"-I{root}", "-o", tmp_path / "device.o"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "device.o").exists()
