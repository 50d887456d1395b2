"""Sum over a dimension, which is kept with size 1."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

batch_size = 5
dim1 = 131
dim2 = 63

dim = 1


CUDA_SOURCE = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cuda_runtime.h>
#include <cstdint>

using index_t = int;

struct Sum {
  template <typename T>
  __device__ T operator()(T a, T b) const { return a + b; }
};

// sum: one thread a row, 315 rows of 131 elements
__global__ void __launch_bounds__(128) forward_rows_0(const float* __restrict__ in_x, float* __restrict__ t0) {
  const index_t row = (static_cast<index_t>(blockIdx.x) * 128 + threadIdx.x);
  if (row >= 315) return;
  float acc0 = 0;
  for (index_t r = 0; r < 131; ++r) {
    const float p0_0 = in_x[(row / 63) * 8253 + r * 63 + row % 63];
    acc0 = Sum()(acc0, p0_0);
  }
  const float red0 = acc0;
  t0[row] = red0;
}

std::vector<torch::Tensor> forward(torch::Tensor in_x) {
  TORCH_CHECK(in_x.is_contiguous() && in_x.numel() == 41265, "in_x: expected 41265 contiguous elements");
  auto stream = at::cuda::getCurrentCUDAStream();
  auto t0 = torch::empty({5, 1, 63}, torch::dtype(torch::kFloat32).device(in_x.device()));
  forward_rows_0<<<3, 128, 0, stream>>>(
      in_x.data_ptr<float>(), t0.data_ptr<float>());
  return {t0};
}
"""

CPP_SOURCE = """
std::vector<torch::Tensor> forward(torch::Tensor in_x);
"""

kernels = load_inline(
    name="kernels",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=['forward'],
)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        results = kernels.forward(
            x.contiguous(),
        )
        return results[0]
