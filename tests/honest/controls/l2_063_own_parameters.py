import math

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="gemm_relu_div",
    cpp_sources="torch::Tensor gemm_relu_div(torch::Tensor x, torch::Tensor w, torch::Tensor b, float divisor);",
    cuda_sources="""
#include <torch/extension.h>
// 8 rows of x a block in shared memory; a thread makes one column for all 8.
constexpr int R = 8;
__global__ void gemm(const float* x, const float* w, const float* b, float* y, int M, int N, int K, float inv) {
    extern __shared__ float xs[];
    const int first = blockIdx.y * R;
    for (int e = threadIdx.x; e < R * K; e += blockDim.x) {
        int r = e / K;
        xs[e] = first + r < M ? x[(first + r) * K + e % K] : 0.f;
    }
    __syncthreads();
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= N) return;
    float acc[R];
    for (int r = 0; r < R; ++r) acc[r] = b[col];
    for (int k = 0; k < K; ++k) {
        const float wk = w[col * K + k];
        #pragma unroll
        for (int r = 0; r < R; ++r) acc[r] += wk * xs[r * K + k];
    }
    for (int r = 0; r < R && first + r < M; ++r) y[(first + r) * N + col] = fmaxf(acc[r], 0.f) * inv;
}
torch::Tensor gemm_relu_div(torch::Tensor x, torch::Tensor w, torch::Tensor b, float divisor) {
    int M = x.size(0), K = x.size(1), N = w.size(0);
    auto y = torch::empty({M, N}, x.options());
    gemm<<<dim3((N + 127) / 128, (M + R - 1) / R), 128, R * K * sizeof(float)>>>(
        x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), M, N, K, 1.0f / divisor);
    return y;
}
""",
    functions=["gemm_relu_div"],
)


class Weights(nn.Module):
    """Named as nn.Linear names them, and drawn as it draws them."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        self.bias = nn.Parameter(torch.empty(out_features))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        bound = 1 / math.sqrt(in_features)
        nn.init.uniform_(self.bias, -bound, bound)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, divisor):
        super().__init__()
        self.linear = Weights(in_features, out_features)
        self.divisor = divisor

    def forward(self, x):
        return ext.gemm_relu_div(x, self.linear.weight, self.linear.bias, self.divisor)
