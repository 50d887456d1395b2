import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="cub_layer_norm",
    cpp_sources="torch::Tensor layer_norm(torch::Tensor x, torch::Tensor w, torch::Tensor b, double eps);",
    cuda_sources="""
#include <torch/extension.h>
#include <cub/block/block_reduce.cuh>
constexpr int kThreads = 256;
__global__ void layer_norm_kernel(const float* x, const float* w, const float* b, float* y, int size, float eps) {
  using Reduce = cub::BlockReduce<float, kThreads>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ float mean, inv;
  const float* row = x + (size_t)blockIdx.x * size;
  float sum = 0.f;
  for (int i = threadIdx.x; i < size; i += kThreads) sum += row[i];
  sum = Reduce(storage).Sum(sum);
  if (threadIdx.x == 0) mean = sum / size;
  __syncthreads();
  float square = 0.f;
  for (int i = threadIdx.x; i < size; i += kThreads) square += (row[i] - mean) * (row[i] - mean);
  square = Reduce(storage).Sum(square);
  if (threadIdx.x == 0) inv = rsqrtf(square / size + eps);
  __syncthreads();
  for (int i = threadIdx.x; i < size; i += kThreads)
    y[(size_t)blockIdx.x * size + i] = (row[i] - mean) * inv * w[i] + b[i];
}
torch::Tensor layer_norm(torch::Tensor x, torch::Tensor w, torch::Tensor b, double eps) {
  auto y = torch::empty_like(x);
  int size = w.numel();
  layer_norm_kernel<<<x.numel() / size, kThreads>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), size, eps);
  return y;
}
""",
    functions=["layer_norm"],
)


class ModelNew(nn.Module):
    def __init__(self, normalized_shape):
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape)

    def forward(self, x):
        return ext.layer_norm(x, self.ln.weight, self.ln.bias, self.ln.eps)
