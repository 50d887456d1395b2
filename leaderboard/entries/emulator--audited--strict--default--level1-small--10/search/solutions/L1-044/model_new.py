"""1-D average pooling, the padding counted; windows overlap."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

batch_size = 3
channels = 7
length = 1027

kernel_size = 8
stride = 1
padding = 4


CUDA_SOURCE = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cuda_runtime.h>
#include <cstdint>

using index_t = int;


// average pooling; copy: one thread an output
__global__ void __launch_bounds__(128) forward_window_0(const float* __restrict__ in_x, float* __restrict__ t1) {
  const index_t i = static_cast<index_t>(blockIdx.x) * 128 + threadIdx.x;
  if (i >= 21588) return;
  float acc = 0;
  for (int kx = 0; kx < 1; ++kx) {
    #pragma unroll 4
    for (int ky = 0; ky < 8; ++ky) {
      const bool w0 = (i % 1028 + ky - 4) >= 0 && (i % 1028 + ky - 4) < 1027;
      const float w1 = (w0) ? in_x[(((((i / 1028) * 1027 + i % 1028 + ky - 4) / 1027) / 7) % 3) * 7189 + ((((i / 1028) * 1027 + i % 1028 + ky - 4) / 1027) % 7) * 1027 + ((i / 1028) * 1027 + i % 1028 + ky - 4) % 1027] : 0;
      acc = acc + w1;
    }
  }
  const float v0 = acc * 0.125f;
  t1[i] = v0;
}

std::vector<torch::Tensor> forward(torch::Tensor in_x) {
  TORCH_CHECK(in_x.is_contiguous() && in_x.numel() == 21567, "in_x: expected 21567 contiguous elements");
  auto stream = at::cuda::getCurrentCUDAStream();
  auto t1 = torch::empty({3, 7, 1028}, torch::dtype(torch::kFloat32).device(in_x.device()));
  forward_window_0<<<169, 128, 0, stream>>>(
      in_x.data_ptr<float>(), t1.data_ptr<float>());
  return {t1};
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
    def __init__(self, kernel_size, stride, padding):
        super().__init__()
        self.avg_pool = nn.AvgPool1d(kernel_size, stride=stride, padding=padding)

    def forward(self, x):
        results = kernels.forward(
            x.contiguous(),
        )
        return results[0]
