"""RMS normalisation over the channels of each position: x / sqrt(mean(x^2) + eps)."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

batch_size = 3
num_features = 24
height = 29
width = 37


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

// mean; add, sqrt, div: one thread a row, 3219 rows of 24 elements
__global__ void __launch_bounds__(128) forward_rows_0(const float* __restrict__ in_x, float* __restrict__ t1) {
  const index_t row = (static_cast<index_t>(blockIdx.x) * 128 + threadIdx.x);
  if (row >= 3219) return;
  float acc0 = 0;
  for (index_t r = 0; r < 24; ++r) {
    const float p0_0 = in_x[(row / 1073) * 25752 + r * 1073 + row % 1073];
    const float p0_1 = p0_0 * p0_0;
    acc0 = Sum()(acc0, p0_1);
  }
  const float red0 = acc0;
  for (index_t r = 0; r < 24; ++r) {
    const float v0 = in_x[(row / 1073) * 25752 + r * 1073 + row % 1073];
    const float v1 = red0 * 0.041666666666666664f;
    const float v2 = v1 + 1e-05f;
    const float v3 = sqrtf(v2);
    const float v4 = v0 / v3;
    t1[(row / 1073) * 25752 + r * 1073 + row % 1073] = v4;
  }
}

std::vector<torch::Tensor> forward(torch::Tensor in_x) {
  TORCH_CHECK(in_x.is_contiguous() && in_x.numel() == 77256, "in_x: expected 77256 contiguous elements");
  auto stream = at::cuda::getCurrentCUDAStream();
  auto t1 = torch::empty({3, 24, 29, 37}, torch::dtype(torch::kFloat32).device(in_x.device()));
  forward_rows_0<<<26, 128, 0, stream>>>(
      in_x.data_ptr<float>(), t1.data_ptr<float>());
  return {t1};
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
    def __init__(self, num_features, eps=1e-5):
        super().__init__()
        self.num_features = num_features
        self.eps = eps

    def forward(self, x):
        results = kernels.forward(
            x.contiguous(),
        )
        return results[0]
