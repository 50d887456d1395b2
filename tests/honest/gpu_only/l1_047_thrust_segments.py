import torch
from torch.utils.cpp_extension import load_inline

# A segmented reduction by thrust, with keys and values made on the fly.
ext = load_inline(
    name="thrust_sum",
    cpp_sources="torch::Tensor sum_dim1(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <thrust/execution_policy.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/discard_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/reduce.h>
struct Key { int extent; __host__ __device__ int operator()(int i) const { return i / extent; } };
struct Value {
  const float* x; int extent, inner;
  __host__ __device__ float operator()(int i) const {
    const int out = i / extent, k = i % extent;
    return x[(out / inner * extent + k) * inner + out % inner];
  }
};
torch::Tensor sum_dim1(torch::Tensor x) {
  const int b = x.size(0), extent = x.size(1), inner = x.size(2);
  auto y = torch::empty({b, 1, inner}, x.options());
  auto count = thrust::make_counting_iterator(0);
  auto keys = thrust::make_transform_iterator(count, Key{extent});
  auto values = thrust::make_transform_iterator(count, Value{x.data_ptr<float>(), extent, inner});
  thrust::reduce_by_key(thrust::cuda::par.on(at::cuda::getCurrentCUDAStream()), keys, keys + b * extent * inner, values,
                        thrust::make_discard_iterator(), y.data_ptr<float>());
  return y;
}
""",
    functions=["sum_dim1"],
)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        assert dim == 1

    def forward(self, x):
        return ext.sum_dim1(x)
