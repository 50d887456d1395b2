"""Instance normalisation of images: per sample and channel over positions, no parameters."""

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

template <typename T>
__device__ T from_lane(T value, int distance) {
  return __shfl_xor_sync(0xffffffffu, value, distance);
}

// What all 32 lanes hold, combined; every lane gets it.
template <typename T, typename Combine>
__device__ T warp_reduce(T value, Combine combine) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value = combine(value, from_lane(value, distance));
  }
  return value;
}

// What all threads of the block hold, combined; every thread gets it.
template <int THREADS, typename T, typename Combine>
__device__ T block_reduce(T value, Combine combine) {
  __shared__ T parts[THREADS / 32];
  value = warp_reduce(value, combine);
  __syncthreads();  // an earlier reduction's parts have been read
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[0];
  for (int warp = 1; warp < THREADS / 32; ++warp) value = combine(value, parts[warp]);
  return value;
}

// mean; variance; sub, add, rsqrt, mul: one block a row, 72 rows of 1073 elements
__global__ void __launch_bounds__(256) forward_rows_0(const float* __restrict__ in_x, float* __restrict__ t2) {
  const index_t row = blockIdx.x;
  const int lane = threadIdx.x;
  float acc0 = 0;
  for (index_t r = lane; r < 1073; r += 256) {
    const float p0_0 = in_x[row * 1073 + r];
    acc0 = Sum()(acc0, p0_0);
  }
  const float red0 = block_reduce<256>(acc0, Sum());
  float acc1 = 0;
  for (index_t r = lane; r < 1073; r += 256) {
    const float p1_0 = in_x[row * 1073 + r];
    const float p1_1 = red0 * 0.0009319664492078285f;
    const float p1_2 = p1_0 - p1_1;
    const float p1_3 = p1_2 * p1_2;
    acc1 = Sum()(acc1, p1_3);
  }
  const float red1 = block_reduce<256>(acc1, Sum());
  for (index_t r = lane; r < 1073; r += 256) {
    const float v0 = in_x[row * 1073 + r];
    const float v1 = red0 * 0.0009319664492078285f;
    const float v2 = v0 - v1;
    const float v3 = red1 * 0.0009319664492078285f;
    const float v4 = v3 + 1e-05f;
    const float v5 = rsqrtf(v4);
    const float v6 = v2 * v5;
    t2[row * 1073 + r] = v6;
  }
}

std::vector<torch::Tensor> forward(torch::Tensor in_x) {
  TORCH_CHECK(in_x.is_contiguous() && in_x.numel() == 77256, "in_x: expected 77256 contiguous elements");
  auto stream = at::cuda::getCurrentCUDAStream();
  auto t2 = torch::empty({3, 24, 29, 37}, torch::dtype(torch::kFloat32).device(in_x.device()));
  forward_rows_0<<<72, 256, 0, stream>>>(
      in_x.data_ptr<float>(), t2.data_ptr<float>());
  return {t2};
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
    def __init__(self, num_features):
        super().__init__()
        self.inorm = nn.InstanceNorm2d(num_features)

    def forward(self, x):
        results = kernels.forward(
            x.contiguous(),
        )
        return results[0]
