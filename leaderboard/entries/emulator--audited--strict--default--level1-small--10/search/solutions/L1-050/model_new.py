"""2-D convolution with bias, the first layer of AlexNet: 3 to 96 channels, kernel 11, stride 4."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

batch_size = 2
height = 67
width = 67

num_classes = 1000  # accepted, not used


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

// 2-d convolution; bias: 1 x (96 x 363) (363 x 512), 128 x 128 tiles, 8 x 8 a thread
__global__ void __launch_bounds__(256) forward_product_0(const float* __restrict__ in_conv1_weight, const float* __restrict__ in_x, const float* __restrict__ in_conv1_bias, float* __restrict__ t1) {
  __shared__ __align__(16) float left[8][132];
  __shared__ __align__(16) float right[8][132];
  const index_t batch = blockIdx.x / 4;
  const index_t first_m = blockIdx.x / 4 % 1 * 128;
  const index_t first_n = blockIdx.x % 4 * 128;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  float acc[8][8] = {};
  for (index_t first_k = 0; first_k < 363; first_k += 8) {
    for (int e = threadIdx.x; e < 1024; e += 256) {
      const int at = e / 8, step = e % 8;
      const index_t m = first_m + at, k = first_k + step;
      const bool inside = m < 96 && k < 363;
      const float l0 = (inside) ? in_conv1_weight[m * 363 + k] : 0;
      left[step][at] = l0;
    }
    for (int e = threadIdx.x; e < 1024; e += 256) {
      const int at = e / 8, step = e % 8;
      const index_t n = first_n + at, k = first_k + step;
      const bool inside = n < 512 && k < 363;
      const bool r0 = ((n / 16 % 16) * 4 + k / 11 % 11 - 2) >= 0 && ((n / 16 % 16) * 4 + k / 11 % 11 - 2) < 67 && ((n % 16) * 4 + k % 11 - 2) >= 0 && ((n % 16) * 4 + k % 11 - 2) < 67;
      const float r1 = (inside && r0) ? in_x[(n / 256) * 13467 + (k / 121) * 4489 + (n / 16 % 16) * 268 + (k / 11 % 11) * 67 + (n % 16) * 4 + k % 11 - 136] : 0;
      const float r2 = inside ? r1 : 0.0f;
      right[step][at] = r2;
    }
    __syncthreads();
    #pragma unroll
    for (int step = 0; step < 8; ++step) {
      __align__(16) float a[8], b[8];
      for (int g = 0; g < 2; ++g)
        reinterpret_cast<float4*>(a)[g] =
            *reinterpret_cast<const float4*>(&left[step][ty * 4 + g * 64]);
      for (int g = 0; g < 2; ++g)
        reinterpret_cast<float4*>(b)[g] =
            *reinterpret_cast<const float4*>(&right[step][tx * 4 + g * 64]);
      #pragma unroll
      for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) acc[i][j] += a[i] * b[j];
    }
    __syncthreads();
  }
  #pragma unroll
  for (int i = 0; i < 8; ++i) {
    const index_t m = first_m + i / 4 * 64 + ty * 4 + i % 4;
    #pragma unroll
    for (int group = 0; group < 2; ++group) {
      const index_t start = first_n + tx * 4 + group * 64;
      if (m < 96 && start < 512) {
        Pack4 t1_items;
        #pragma unroll
        for (int x = 0; x < 4; ++x) {
          const int j = group * 4 + x;
          const index_t n = start + x;
          const float v0 = in_conv1_bias[m];
          const float v1 = acc[i][j] + v0;
          t1_items.lane[x] = v1;
        }
        const index_t n = start;
        *reinterpret_cast<float4*>(t1 + (n / 256) * 24576 + m * 256 + n % 256) = t1_items.vector;
      }
    }
  }
}

std::vector<torch::Tensor> forward(torch::Tensor in_x, torch::Tensor in_conv1_weight, torch::Tensor in_conv1_bias) {
  TORCH_CHECK(in_x.is_contiguous() && in_x.numel() == 26934, "in_x: expected 26934 contiguous elements");
  TORCH_CHECK(in_conv1_weight.is_contiguous() && in_conv1_weight.numel() == 34848, "in_conv1_weight: expected 34848 contiguous elements");
  TORCH_CHECK(in_conv1_bias.is_contiguous() && in_conv1_bias.numel() == 96, "in_conv1_bias: expected 96 contiguous elements");
  auto stream = at::cuda::getCurrentCUDAStream();
  auto t1 = torch::empty({2, 96, 16, 16}, torch::dtype(torch::kFloat32).device(in_x.device()));
  forward_product_0<<<4, 256, 0, stream>>>(
      in_conv1_weight.data_ptr<float>(), in_x.data_ptr<float>(), in_conv1_bias.data_ptr<float>(), t1.data_ptr<float>());
  return {t1};
}
"""

CPP_SOURCE = """
std::vector<torch::Tensor> forward(torch::Tensor in_x, torch::Tensor in_conv1_weight, torch::Tensor in_conv1_bias);
"""

kernels = load_inline(
    name="kernels",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=['forward'],
)


class ModelNew(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 96, kernel_size=11, stride=4, padding=2)

    def forward(self, x):
        results = kernels.forward(
            x.contiguous(),
            self.conv1.weight,
            self.conv1.bias,
        )
        return results[0]
