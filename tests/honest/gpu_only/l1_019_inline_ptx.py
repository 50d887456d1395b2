import torch
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="ptx_relu",
    cpp_sources="torch::Tensor relu(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
__device__ __forceinline__ float ptx_max(float a, float b) {
  float r;
  asm("max.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
__device__ __forceinline__ float load_streaming(const float* p) {
  float v;
  asm volatile("ld.global.cs.f32 %0, [%1];" : "=f"(v) : "l"(p));
  return v;
}
__global__ void relu_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = ptx_max(load_streaming(x + i), 0.f);
}
torch::Tensor relu(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
""",
    functions=["relu"],
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.relu(x)
