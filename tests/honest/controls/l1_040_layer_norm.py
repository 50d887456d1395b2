import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

layernorm_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void layernorm_kernel(const float* __restrict__ x, const float* __restrict__ gamma,
                                 const float* __restrict__ beta, float* __restrict__ y, int size, float eps) {
    __shared__ float2 reduce[256];
    const float* row = x + (long long)blockIdx.x * size;
    float2 acc = make_float2(0.f, 0.f);
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
        float v = row[i];
        acc.x += v;
        acc.y += v * v;
    }
    reduce[threadIdx.x] = acc;
    __syncthreads();
    for (int s = 128; s; s >>= 1) {
        if (threadIdx.x < s) {
            float2 mine = reduce[threadIdx.x], other = reduce[threadIdx.x + s];
            reduce[threadIdx.x] = make_float2(mine.x + other.x, mine.y + other.y);
        }
        __syncthreads();
    }
    float mean = reduce[0].x / size;
    float var = reduce[0].y / size - mean * mean;
    float inv = rsqrtf(var + eps);
    for (int i = threadIdx.x; i < size; i += blockDim.x)
        y[(long long)blockIdx.x * size + i] = (row[i] - mean) * inv * gamma[i] + beta[i];
}

torch::Tensor layernorm(torch::Tensor x, torch::Tensor gamma, torch::Tensor beta, double eps) {
    auto y = torch::empty_like(x);
    int size = gamma.numel(), rows = x.numel() / size;
    layernorm_kernel<<<rows, 256>>>(x.data_ptr<float>(), gamma.data_ptr<float>(), beta.data_ptr<float>(), y.data_ptr<float>(), size, (float)eps);
    return y;
}
"""
layernorm = load_inline(
    name="layernorm",
    cpp_sources="torch::Tensor layernorm(torch::Tensor x, torch::Tensor gamma, torch::Tensor beta, double eps);",
    cuda_sources=layernorm_source,
    functions=["layernorm"],
)


class ModelNew(nn.Module):
    def __init__(self, normalized_shape: tuple):
        super(ModelNew, self).__init__()
        self.ln = nn.LayerNorm(normalized_shape=normalized_shape)

    def forward(self, x):
        return layernorm.layernorm(x, self.ln.weight, self.ln.bias, 1e-5)
