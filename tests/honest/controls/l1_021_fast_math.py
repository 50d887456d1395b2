import torch
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="fast_sigmoid",
    cpp_sources="torch::Tensor fwd(torch::Tensor);",
    cuda_sources=r"""
#include <cuda_runtime.h>
__global__ void k(const float* x, float* y, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __fdividef(1.f, 1.f + __expf(-x[i]));
}
torch::Tensor fwd(torch::Tensor x) {
  auto y = torch::empty_like(x);
  unsigned n = x.numel();
  k<<<(n + 255u) / 256u, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
""",
    functions=["fwd"],
    extra_cuda_cflags=["-O3", "--use_fast_math"],
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.fwd(x)
