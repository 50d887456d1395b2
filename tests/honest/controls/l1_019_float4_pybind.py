import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

# Vectorised by four; the last n % 4 elements go one at a time.
_src = r'''
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

static constexpr int kThreads = 128;

__device__ __forceinline__ float4 relu4(float4 v) {
  return make_float4(fmaxf(v.x, 0.f), fmaxf(v.y, 0.f), fmaxf(v.z, 0.f), fmaxf(v.w, 0.f));
}

__global__ void __launch_bounds__(kThreads) relu_vec(const float* __restrict__ in,
                                                     float* __restrict__ out, int64_t n) {
  const int64_t n4 = n >> 2;
  const int64_t t = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (t < n4) {
    reinterpret_cast<float4*>(out)[t] = relu4(__ldg(reinterpret_cast<const float4*>(in) + t));
  }
  const int64_t rest = n & 3;
  if (t < rest) {
    out[4 * n4 + t] = fmaxf(in[4 * n4 + t], 0.f);
  }
}

at::Tensor forward(const at::Tensor& x) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.scalar_type() == at::kFloat, "float, please");
  at::Tensor out = at::empty_like(x);
  const int64_t n = x.numel();
  const int blocks = std::max<int64_t>(1, (n / 4 + kThreads - 1) / kThreads);
  relu_vec<<<blocks, kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &forward, "relu, four at a time");
}
'''

_ext = load_inline("relu_vec_ext", cpp_sources="", cuda_sources=_src, extra_cuda_cflags=["-O3"])


class ModelNew(nn.Module):
    def forward(self, x):
        return _ext.forward(x)
