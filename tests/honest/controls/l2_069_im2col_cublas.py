import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cublas_v2.h>

__global__ void im2col(const float* x, float* cols, int C, int H, int W, int R, int OH, int OW) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;  // column
  const int row = blockIdx.y;                           // (c, r, s)
  if (i >= OH * OW) return;
  const int s = row % R, r = row / R % R, c = row / (R * R);
  cols[(size_t)row * OH * OW + i] = x[(c * H + i / OW + r) * W + i % OW + s];
}

__global__ void bias_hardswish_relu(float* y, const float* bias, int hw, int total) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  const float v = y[i] + bias[i / hw];
  const float gate = fminf(fmaxf(v + 3.f, 0.f), 6.f) / 6.f;
  y[i] = fmaxf(v * gate, 0.f);
}

torch::Tensor forward(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
  const int N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3), K = w.size(0), R = w.size(2);
  const int OH = H - R + 1, OW = W - R + 1, hw = OH * OW, rows = C * R * R;
  auto cols = torch::empty({rows, hw}, x.options());
  auto y = torch::empty({N, K, OH, OW}, x.options());
  auto handle = at::cuda::getCurrentCUDABlasHandle();
  auto stream = at::cuda::getCurrentCUDAStream();
  const float one = 1.f, zero = 0.f;
  for (int n = 0; n < N; ++n) {
    float* out = y.data_ptr<float>() + (size_t)n * K * hw;
    im2col<<<dim3((hw + 255) / 256, rows), 256, 0, stream>>>(x.data_ptr<float>() + (size_t)n * C * H * W, cols.data_ptr<float>(), C, H, W, R, OH, OW);
    cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, hw, K, rows, &one, cols.data_ptr<float>(), hw, w.data_ptr<float>(), rows, &zero, out, hw);
    bias_hardswish_relu<<<(K * hw + 255) / 256, 256, 0, stream>>>(out, b.data_ptr<float>(), hw, K * hw);
  }
  return y;
}
"""
ext = load_inline(name="im2col_conv", cpp_sources="torch::Tensor forward(torch::Tensor x, torch::Tensor w, torch::Tensor b);", cuda_sources=source, functions=["forward"], extra_ldflags=["-lcublas"])


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        return ext.forward(x, self.conv.weight, self.conv.bias)
