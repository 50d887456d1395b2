import torch
from torch.utils.cpp_extension import load_inline

src = r"""
#include <torch/extension.h>
template <int kWarps>
__device__ float block_sum(float v, float* shared) {
  #pragma unroll
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
  __syncthreads();
  float total = 0.f;
  for (int w = 0; w < kWarps; ++w) total += shared[w];
  __syncthreads();
  return total;
}

__global__ void instance_norm(const float* __restrict__ in, float* __restrict__ out, int hw, float eps) {
  __shared__ float shared[4];
  in += (size_t)blockIdx.x * hw;
  out += (size_t)blockIdx.x * hw;
  float sum = 0.f;
  for (int i = threadIdx.x; i < hw; i += 128) sum += in[i];
  const float mean = block_sum<4>(sum, shared) / hw;
  float square = 0.f;
  for (int i = threadIdx.x; i < hw; i += 128) { const float d = in[i] - mean; square += d * d; }
  const float scale = rsqrtf(block_sum<4>(square, shared) / hw + eps);
  for (int i = threadIdx.x; i < hw; i += 128) out[i] = (in[i] - mean) * scale;
}

torch::Tensor forward(torch::Tensor x, double eps) {
  auto out = torch::empty_like(x);
  const int planes = x.size(0) * x.size(1), hw = x.size(2) * x.size(3);
  instance_norm<<<planes, 128>>>(x.data_ptr<float>(), out.data_ptr<float>(), hw, (float)eps);
  return out;
}
"""
ext = load_inline(name="inorm", cpp_sources="torch::Tensor forward(torch::Tensor x, double eps);", cuda_sources=src, functions=["forward"])


class ModelNew(torch.nn.Module):
    def __init__(self, num_features, eps=1e-5):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        return ext.forward(x, self.eps)
