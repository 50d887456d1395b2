import math

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cublas_v2.h>

__global__ void add_bias(float* y, const float* b, int n, int cols) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += b[i % cols];
}

torch::Tensor linear(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
  const int K = x.size(-1), M = x.numel() / K, N = w.size(0);
  auto sizes = x.sizes().vec();
  sizes.back() = N;
  auto y = torch::empty(sizes, x.options());
  const float one = 1.f, zero = 0.f;
  cublasSgemm(at::cuda::getCurrentCUDABlasHandle(), CUBLAS_OP_T, CUBLAS_OP_N, N, M, K, &one,
              w.data_ptr<float>(), K, x.data_ptr<float>(), K, &zero, y.data_ptr<float>(), N);
  add_bias<<<(M * N + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(y.data_ptr<float>(), b.data_ptr<float>(), M * N, N);
  return y;
}

// A warp for each (head, query): online softmax over keys up to the query, head_dim <= 32 lanes.
__global__ void causal(const float* qkv, float* y, int T, int C, int heads, float scale) {
  const int D = C / heads, lane = threadIdx.x, t = blockIdx.x, h = blockIdx.y, b = blockIdx.z;
  const float* base = qkv + (size_t)b * T * 3 * C + h * D;
  const float q = lane < D ? base[(size_t)t * 3 * C + lane] * scale : 0.f;
  float top = -INFINITY, sum = 0.f, acc = 0.f;
  for (int j = 0; j <= t; ++j) {
    const float* row = base + (size_t)j * 3 * C;
    float s = lane < D ? q * row[C + lane] : 0.f;
    for (int m = 16; m; m >>= 1) s += __shfl_xor_sync(0xffffffff, s, m);
    const float next = fmaxf(top, s), shrink = expf(top - next), p = expf(s - next);
    sum = sum * shrink + p;
    acc = acc * shrink + (lane < D ? p * row[2 * C + lane] : 0.f);
    top = next;
  }
  if (lane < D) y[((size_t)b * T + t) * C + h * D + lane] = acc / sum;
}

torch::Tensor attention(torch::Tensor qkv, int64_t heads) {
  const int B = qkv.size(0), T = qkv.size(1), C = qkv.size(2) / 3;
  TORCH_CHECK(C / heads <= 32, "head_dim: expected at most 32, got ", C / heads);
  auto y = torch::empty({B, T, C}, qkv.options());
  causal<<<dim3(T, heads, B), 32, 0, at::cuda::getCurrentCUDAStream()>>>(
      qkv.data_ptr<float>(), y.data_ptr<float>(), T, C, heads, 1.f / sqrtf((float)(C / heads)));
  return y;
}
"""
ops = load_inline(
    name="causal_attention",
    cpp_sources="torch::Tensor linear(torch::Tensor x, torch::Tensor w, torch::Tensor b); torch::Tensor attention(torch::Tensor qkv, int64_t heads);",
    cuda_sources=source,
    functions=["linear", "attention"],
    extra_ldflags=["-lcublas"],
)


class ModelNew(nn.Module):
    def __init__(self, n_embd, n_head, attn_pdrop, resid_pdrop, max_seqlen):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.register_buffer("bias", torch.tril(torch.ones(max_seqlen, max_seqlen)).view(1, 1, max_seqlen, max_seqlen))
        self.n_head = n_head

    def forward(self, x):
        qkv = ops.linear(x, self.c_attn.weight, self.c_attn.bias)
        y = ops.attention(qkv, self.n_head)
        return ops.linear(y, self.c_proj.weight, self.c_proj.bias)
