import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

linear_source = """
#include <torch/extension.h>
__global__ void linear(const float* x, const float* w, const float* b, float* y, int N, int K, bool relu) {
    extern __shared__ float row[];
    for (int k = threadIdx.x; k < K; k += blockDim.x) row[k] = x[blockIdx.y * K + k];
    __syncthreads();
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n < N) {
        float acc = b[n];
        for (int k = 0; k < K; ++k) acc += row[k] * w[n * K + k];
        y[blockIdx.y * N + n] = relu ? fmaxf(acc, 0.0f) : acc;
    }
}
torch::Tensor linear_forward(torch::Tensor x, torch::Tensor w, torch::Tensor b, bool relu) {
    int M = x.size(0), K = x.size(1), N = w.size(0);
    auto y = torch::empty({M, N}, x.options());
    linear<<<dim3((N + 63) / 64, M), 64, K * sizeof(float)>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), N, K, relu);
    return y;
}
"""
ops = load_inline(name="mlp_ops", cpp_sources="torch::Tensor linear_forward(torch::Tensor x, torch::Tensor w, torch::Tensor b, bool relu);", cuda_sources=linear_source, functions=["linear_forward"])


class ModelNew(nn.Module):
    def __init__(self, input_size, layer_sizes, output_size):
        super().__init__()
        layers = []
        current = input_size
        for size in layer_sizes:
            layers.append(nn.Linear(current, size))
            layers.append(nn.ReLU())
            current = size
        layers.append(nn.Linear(current, output_size))
        self.network = nn.Sequential(*layers)

    def forward(self, x):
        linears = [m for m in self.network if isinstance(m, nn.Linear)]
        for i, layer in enumerate(linears):
            x = ops.linear_forward(x, layer.weight, layer.bias, i < len(linears) - 1)
        return x
