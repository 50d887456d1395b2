"""Matrix multiplication with a small result and a very long contraction: C = A @ B."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

M = 28
K = 8195
N = 36


CUDA_SOURCE = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cuda_runtime.h>
#include <cstdint>

using index_t = int;


// mm: 1 x (28 x 8195) (8195 x 36), 16 x 16 tiles, 1 x 1 a thread
__global__ void __launch_bounds__(256) forward_product_0(const float* __restrict__ in_A, const float* __restrict__ in_B, float* __restrict__ t0) {
  __shared__ __align__(16) float left[8][17];
  __shared__ __align__(16) float right[8][17];
  const index_t batch = blockIdx.x / 6;
  const index_t first_m = blockIdx.x / 3 % 2 * 16;
  const index_t first_n = blockIdx.x % 3 * 16;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  float acc[1][1] = {};
  for (index_t first_k = 0; first_k < 8195; first_k += 8) {
    for (int e = threadIdx.x; e < 128; e += 256) {
      const int at = e / 8, step = e % 8;
      const index_t m = first_m + at, k = first_k + step;
      const bool inside = m < 28 && k < 8195;
      const float l0 = (inside) ? in_A[m * 8195 + k] : 0;
      left[step][at] = l0;
    }
    for (int e = threadIdx.x; e < 128; e += 256) {
      const int at = e % 16, step = e / 16;
      const index_t n = first_n + at, k = first_k + step;
      const bool inside = n < 36 && k < 8195;
      const float r0 = (inside) ? in_B[k * 36 + n] : 0;
      right[step][at] = r0;
    }
    __syncthreads();
    #pragma unroll
    for (int step = 0; step < 8; ++step) {
      __align__(16) float a[1], b[1];
      for (int i = 0; i < 1; ++i) a[i] = left[step][ty + i * 16];
      for (int i = 0; i < 1; ++i) b[i] = right[step][tx + i * 16];
      #pragma unroll
      for (int i = 0; i < 1; ++i)
        for (int j = 0; j < 1; ++j) acc[i][j] += a[i] * b[j];
    }
    __syncthreads();
  }
  #pragma unroll
  for (int i = 0; i < 1; ++i) {
    const index_t m = first_m + ty + i * 16;
    #pragma unroll
    for (int j = 0; j < 1; ++j) {
      const index_t n = first_n + tx + j * 16;
      if (m < 28 && n < 36) {
        t0[m * 36 + n] = acc[i][j];
      }
    }
  }
}

std::vector<torch::Tensor> forward(torch::Tensor in_A, torch::Tensor in_B) {
  TORCH_CHECK(in_A.is_contiguous() && in_A.numel() == 229460, "in_A: expected 229460 contiguous elements");
  TORCH_CHECK(in_B.is_contiguous() && in_B.numel() == 295020, "in_B: expected 295020 contiguous elements");
  auto stream = at::cuda::getCurrentCUDAStream();
  auto t0 = torch::empty({28, 36}, torch::dtype(torch::kFloat32).device(in_A.device()));
  forward_product_0<<<6, 256, 0, stream>>>(
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
