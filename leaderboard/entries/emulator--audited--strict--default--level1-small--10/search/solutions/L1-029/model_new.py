"""Softplus: log(1 + exp(x)), elementwise; x itself above 20."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.cpp_extension import load_inline

batch_size = 16
dim = 771


CUDA_SOURCE = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cuda_runtime.h>
#include <cstdint>

using index_t = int;

// Four neighbouring floats, moved as one.
union Pack4 {
  float4 vector;
  float lane[4];
};

// gt, exp, log1p, where: one thread for 4 of 12336 elements
__global__ void __launch_bounds__(256) forward_pointwise_0(const float* __restrict__ in_x, float* __restrict__ t0) {
  const index_t item = static_cast<index_t>(blockIdx.x) * 256 + threadIdx.x;
  if (item >= 3084) return;
  Pack4 in_x_items;
  in_x_items.vector = reinterpret_cast<const float4*>(in_x)[item];
  Pack4 t0_items;
  #pragma unroll
  for (int k = 0; k < 4; ++k) {
    const index_t i = item * 4 + k;
    const bool v0 = in_x_items.lane[k] > 20.0f;
    const float v1 = expf(in_x_items.lane[k]);
    const float v2 = log1pf(v1);
    const float v3 = v0 ? in_x_items.lane[k] : v2;
    t0_items.lane[k] = v3;
  }
  reinterpret_cast<float4*>(t0)[item] = t0_items.vector;
}

std::vector<torch::Tensor> forward(torch::Tensor in_x) {
  TORCH_CHECK(in_x.is_contiguous() && in_x.numel() == 12336, "in_x: expected 12336 contiguous elements");
  auto stream = at::cuda::getCurrentCUDAStream();
  auto t0 = torch::empty({16, 771}, torch::dtype(torch::kFloat32).device(in_x.device()));
  forward_pointwise_0<<<13, 256, 0, stream>>>(
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
    def forward(self, x):
        results = kernels.forward(
            x.contiguous(),
        )
        return results[0]
