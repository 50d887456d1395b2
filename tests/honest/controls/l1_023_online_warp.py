import torch
from torch.utils.cpp_extension import load_inline

# One warp a row; maximum and sum in one pass, merged by butterfly shuffles.
cu = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>
#include <math_constants.h>

struct Running { float top, sum; };

__device__ Running merge(Running a, Running b) {
  const float top = fmaxf(a.top, b.top);
  if (top == -CUDART_INF_F) return {top, 0.f};
  return {top, a.sum * expf(a.top - top) + b.sum * expf(b.top - top)};
}

__global__ void online_softmax(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
  const int row = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
  const int lane = threadIdx.x & 31;
  if (row >= rows) return;
  x += (size_t)row * cols;
  y += (size_t)row * cols;
  Running r{-CUDART_INF_F, 0.f};
  for (int c = lane; c < cols; c += 32) r = merge(r, {x[c], 1.f});
  for (int mask = 16; mask; mask >>= 1) {
    Running other{__shfl_xor_sync(~0u, r.top, mask), __shfl_xor_sync(~0u, r.sum, mask)};
    r = merge(r, other);
  }
  for (int c = lane; c < cols; c += 32) y[c] = expf(x[c] - r.top) / r.sum;
}

torch::Tensor run(torch::Tensor x) {
  const int cols = x.size(-1), rows = x.numel() / cols;
  auto y = torch::empty_like(x);
  online_softmax<<<(rows + 3) / 4, 128, 0, c10::cuda::getCurrentCUDAStream().stream()>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), rows, cols);
  return y;
}
"""
_softmax = load_inline("online_softmax", "torch::Tensor run(torch::Tensor x);", cu, functions=["run"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return _softmax.run(x)
