"""The headers as a build for a GPU has them, tried on what needs no GPU: tensors of the CPU."""

import pytest
import torch

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
