"""Diagonal matrix times a matrix: C = diag(A) @ B, the diagonal given as a vector."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

M = 391
N = 517


CUDA_SOURCE = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cuda_runtime.h>
#include <cstdint>

using index_t = int;


// mul: one thread for 1 of 202147 elements
__global__ void __launch_bounds__(256) forward_pointwise_0(const float* __restrict__ in_A, const float* __restrict__ in_B, float* __restrict__ t0) {
  const index_t i = static_cast<index_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= 202147) return;
  const float v0 = in_A[i / 517];
  const float v1 = in_B[i];
  const float v2 = v0 * v1;
  t0[i] = v2;
}

std::vector<torch::Tensor> forward(torch::Tensor in_A, torch::Tensor in_B) {
  TORCH_CHECK(in_A.is_contiguous() && in_A.numel() == 391, "in_A: expected 391 contiguous elements");
  TORCH_CHECK(in_B.is_contiguous() && in_B.numel() == 202147, "in_B: expected 202147 contiguous elements");
  auto stream = at::cuda::getCurrentCUDAStream();
  auto t0 = torch::empty({391, 517}, torch::dtype(torch::kFloat32).device(in_A.device()));
  forward_pointwise_0<<<790, 256, 0, stream>>>(
      in_A.data_ptr<float>(), in_B.data_ptr<float>(), t0.data_ptr<float>());
  return {t0};
}
"""

CPP_SOURCE = """
std::vector<torch::Tensor> forward(torch::Tensor in_A, torch::Tensor in_B);
"""

kernels = load_inline(
    name="kernels",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=['forward'],
)


class ModelNew(nn.Module):
    def forward(self, A, B):
        results = kernels.forward(
            A.contiguous(),
            B.contiguous(),
        )
        return results[0]
