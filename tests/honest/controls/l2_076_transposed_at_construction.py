import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

gemm_add_relu = load_inline(
    name="gemm_add_relu",
    cpp_sources="torch::Tensor gemm_add_relu(torch::Tensor x, torch::Tensor wt, torch::Tensor bias);",
    cuda_sources="""
#include <torch/extension.h>
__global__ void kernel(const float* x, const float* wt, const float* bias, float* y, int M, int N, int K) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (col >= N) return;
    float acc = bias[col];
    for (int k = 0; k < K; ++k) acc += x[row * K + k] * wt[k * N + col];
    y[row * N + col] = acc > 0 ? acc : 0;
}
torch::Tensor gemm_add_relu(torch::Tensor x, torch::Tensor wt, torch::Tensor bias) {
    int M = x.size(0), K = x.size(1), N = wt.size(1);
    auto y = torch::empty({M, N}, x.options());
    kernel<<<dim3((N + 127) / 128, M), 128>>>(x.data_ptr<float>(), wt.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(), M, N, K);
    return y;
}
""",
    functions=["gemm_add_relu"],
)


class ModelNew(nn.Module):
    """The weight is turned round once, in the constructor, and only kept that way."""

    def __init__(self, in_features, out_features, bias_shape):
        super().__init__()
        gemm = nn.Linear(in_features, out_features, bias=False)
        self.register_buffer("wt", gemm.weight.detach().t().contiguous())
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        return gemm_add_relu.gemm_add_relu(x, self.wt, self.bias)
