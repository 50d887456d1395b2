"""Bias-free 3-D transposed convolution, every side of kernel and input different."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

batch_size = 2
in_channels = 8
out_channels = 6
depth = 5
height = 9
width = 13

kernel_size = (3, 5, 7)


CUDA_SOURCE = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cuda_runtime.h>
#include <cstdint>

using index_t = int;


// 3-d transposed convolution: one thread an output
__global__ void __launch_bounds__(128) forward_window_0(const float* __restrict__ in_conv_transpose3d_weight, const float* __restrict__ in_x, float* __restrict__ t0) {
  const index_t i = static_cast<index_t>(blockIdx.x) * 128 + threadIdx.x;
  if (i >= 20748) return;
  float acc = 0;
  for (int c = 0; c < 8; ++c) {
    for (int kx = 0; kx < 3; ++kx) {
      for (int ky = 0; ky < 5; ++ky) {
        #pragma unroll 4
        for (int kz = 0; kz < 7; ++kz) {
          const float w0 = in_conv_transpose3d_weight[c * 630 + (i / 1729 % 6) * 105 + kx * 35 + ky * 7 + kz];
          const bool w1 = (i / 247 % 7 - kx) >= 0 && (i / 247 % 7 - kx) < 5 && (i / 19 % 13 - ky) >= 0 && (i / 19 % 13 - ky) < 9 && (i % 19 - kz) >= 0 && (i % 19 - kz) < 13;
          const float w2 = (w1) ? in_x[(i / 10374) * 4680 + c * 585 + (i / 247 % 7) * 117 - kx * 117 + (i / 19 % 13) * 13 - ky * 13 + i % 19 - kz] : 0;
          const float w3 = w0 * w2;
          acc = acc + w3;
        }
      }
    }
  }
  t0[i] = acc;
}

std::vector<torch::Tensor> forward(torch::Tensor in_x, torch::Tensor in_conv_transpose3d_weight) {
  TORCH_CHECK(in_x.is_contiguous() && in_x.numel() == 9360, "in_x: expected 9360 contiguous elements");
  TORCH_CHECK(in_conv_transpose3d_weight.is_contiguous() && in_conv_transpose3d_weight.numel() == 5040, "in_conv_transpose3d_weight: expected 5040 contiguous elements");
  auto stream = at::cuda::getCurrentCUDAStream();
  auto t0 = torch::empty({2, 6, 7, 13, 19}, torch::dtype(torch::kFloat32).device(in_x.device()));
  forward_window_0<<<163, 128, 0, stream>>>(
      in_conv_transpose3d_weight.data_ptr<float>(), in_x.data_ptr<float>(), t0.data_ptr<float>());
  return {t0};
}
"""

CPP_SOURCE = """
std::vector<torch::Tensor> forward(torch::Tensor in_x, torch::Tensor in_conv_transpose3d_weight);
"""

kernels = load_inline(
    name="kernels",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=['forward'],
)


class ModelNew(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=(1, 1, 1),
        padding=(0, 0, 0),
        output_padding=(0, 0, 0),
        groups=1,
        bias=False,
    ):
        super().__init__()
        self.conv_transpose3d = nn.ConvTranspose3d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            output_padding=output_padding,
            groups=groups,
            bias=bias,
        )

    def forward(self, x):
        results = kernels.forward(
            x.contiguous(),
            self.conv_transpose3d.weight,
        )
        return results[0]
