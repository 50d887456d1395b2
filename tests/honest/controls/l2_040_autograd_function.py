import torch
from torch import nn
from torch.autograd import Function
from torch.utils.cpp_extension import load_inline

kernels = load_inline(
    name="scaled_linear",
    cpp_sources="torch::Tensor scaled_linear(torch::Tensor x, torch::Tensor w, torch::Tensor b, double factor);",
    cuda_sources="""
#include <torch/extension.h>
// Two by two outputs a thread, straight from global memory.
__global__ void scaled_linear_kernel(const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ b, float* __restrict__ y, int M, int N, int K, float factor) {
    int n = (blockIdx.x * blockDim.x + threadIdx.x) * 2, m = (blockIdx.y * blockDim.y + threadIdx.y) * 2;
    if (m >= M || n >= N) return;
    bool more_rows = m + 1 < M, more_cols = n + 1 < N;
    float c00 = 0, c01 = 0, c10 = 0, c11 = 0;
    for (int k = 0; k < K; ++k) {
        float a0 = x[m * K + k], a1 = more_rows ? x[(m + 1) * K + k] : 0.f;
        float b0 = w[n * K + k], b1 = more_cols ? w[(n + 1) * K + k] : 0.f;
        c00 += a0 * b0; c01 += a0 * b1; c10 += a1 * b0; c11 += a1 * b1;
    }
    y[m * N + n] = (c00 + b[n]) * factor;
    if (more_cols) y[m * N + n + 1] = (c01 + b[n + 1]) * factor;
    if (more_rows) y[(m + 1) * N + n] = (c10 + b[n]) * factor;
    if (more_rows && more_cols) y[(m + 1) * N + n + 1] = (c11 + b[n + 1]) * factor;
}
torch::Tensor scaled_linear(torch::Tensor x, torch::Tensor w, torch::Tensor b, double factor) {
    int M = x.size(0), K = x.size(1), N = w.size(0);
    auto y = torch::empty({M, N}, x.options());
    dim3 block(16, 8), grid((N + 31) / 32, (M + 15) / 16);
    scaled_linear_kernel<<<grid, block>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), M, N, K, factor);
    return y;
}
""",
    functions=["scaled_linear"],
)


class ScaledLinear(Function):
    @staticmethod
    def forward(ctx, x, weight, bias, factor):
        return kernels.scaled_linear(x, weight, bias, factor)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, scaling_factor):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.scaling_factor = scaling_factor

    def forward(self, x):
        return ScaledLinear.apply(x, self.matmul.weight, self.matmul.bias, 1.0 + self.scaling_factor)
