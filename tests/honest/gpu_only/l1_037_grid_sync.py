import torch
from torch.utils.cpp_extension import load_inline

# One cooperative launch: partial sums, a grid-wide barrier, then the division.
ext = load_inline(
    name="grid_sync",
    cpp_sources="torch::Tensor frobenius(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cooperative_groups.h>
#include <ATen/cuda/CUDAContext.h>
namespace cg = cooperative_groups;
__global__ void frobenius_kernel(const float* x, float* y, double* total, int n) {
  cg::grid_group grid = cg::this_grid();
  double sum = 0.0;
  for (int i = grid.thread_rank(); i < n; i += grid.size()) sum += (double)x[i] * x[i];
  for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, d);
  if (threadIdx.x % 32 == 0) atomicAdd(total, sum);
  grid.sync();
  const float inv = (float)(1.0 / sqrt(*(volatile double*)total));
  for (int i = grid.thread_rank(); i < n; i += grid.size()) y[i] = x[i] * inv;
}
torch::Tensor frobenius(torch::Tensor x) {
  auto y = torch::empty_like(x);
  auto total = torch::zeros({1}, x.options().dtype(torch::kDouble));
  int n = x.numel();
  const float* in = x.data_ptr<float>();
  float* out = y.data_ptr<float>();
  double* sum = total.data_ptr<double>();
  void* args[] = {&in, &out, &sum, &n};
  C10_CUDA_CHECK(cudaLaunchCooperativeKernel((void*)frobenius_kernel, dim3(32), dim3(256), args, 0, at::cuda::getCurrentCUDAStream()));
  return y;
}
""",
    functions=["frobenius"],
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.frobenius(x)
