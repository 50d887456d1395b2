import torch
from torch.utils.cpp_extension import load_inline

# The last block to finish adds up the partial sums (the threadFenceReduction pattern).
text = r"""
#include <torch/extension.h>
#define BLOCKS 24
#define THREADS 256
__device__ unsigned int arrived = 0;

__global__ void norm_kernel(const float* x, float* partial, float* norm, int n) {
  __shared__ float cache[THREADS];
  __shared__ bool last;
  float acc = 0.f;
  for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += BLOCKS * THREADS) acc += x[i] * x[i];
  cache[threadIdx.x] = acc;
  __syncthreads();
  for (int s = THREADS / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) cache[threadIdx.x] += cache[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = cache[0];
    __threadfence();
    last = atomicAdd(&arrived, 1u) == BLOCKS - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float sum = 0.f;
    volatile float* p = partial;
    for (int b = 0; b < BLOCKS; ++b) sum += p[b];
    norm[0] = sqrtf(sum);
    arrived = 0;
  }
}
__global__ void scale_kernel(const float* x, const float* norm, float* y, int n) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  if (i < n) y[i] = x[i] / norm[0];
}
torch::Tensor run(torch::Tensor x) {
  int n = x.numel();
  auto scratch = torch::empty({BLOCKS + 1}, x.options());
  float* partial = scratch.data_ptr<float>();
  auto y = torch::empty_like(x);
  norm_kernel<<<BLOCKS, THREADS>>>(x.data_ptr<float>(), partial, partial + BLOCKS, n);
  scale_kernel<<<(n + THREADS - 1) / THREADS, THREADS>>>(x.data_ptr<float>(), partial + BLOCKS, y.data_ptr<float>(), n);
  return y;
}
"""
ext = load_inline(name="last_block", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=text, functions=["run"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.run(x)
