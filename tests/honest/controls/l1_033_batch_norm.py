import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

bn_source = """
#include <torch/extension.h>

// Training mode: statistics of this batch.
__global__ void channel_stats(const float* x, float* mean, float* var, int N, int C, int HW) {
    int c = blockIdx.x;
    __shared__ double s1[256], s2[256];
    double a = 0, b = 0;
    for (int i = threadIdx.x; i < N * HW; i += blockDim.x) {
        float v = x[((i / HW) * C + c) * HW + i % HW];
        a += v;
        b += (double)v * v;
    }
    s1[threadIdx.x] = a;
    s2[threadIdx.x] = b;
    __syncthreads();
    for (int w = 128; w > 0; w >>= 1) {
        if (threadIdx.x < w) {
            s1[threadIdx.x] += s1[threadIdx.x + w];
            s2[threadIdx.x] += s2[threadIdx.x + w];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        double m = s1[0] / (N * HW);
        mean[c] = m;
        var[c] = s2[0] / (N * HW) - m * m;
    }
}

__global__ void normalize(const float* x, const float* mean, const float* var, const float* weight,
                          const float* bias, float* y, int C, int HW, int total, float eps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int c = i / HW % C;
    y[i] = (x[i] - mean[c]) * rsqrtf(var[c] + eps) * weight[c] + bias[c];
}

torch::Tensor batch_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, float eps) {
    int N = x.size(0), C = x.size(1), HW = x.size(2) * x.size(3), total = x.numel();
    auto mean = torch::empty({C}, x.options()), var = torch::empty({C}, x.options());
    auto y = torch::empty_like(x);
    channel_stats<<<C, 256>>>(x.data_ptr<float>(), mean.data_ptr<float>(), var.data_ptr<float>(), N, C, HW);
    normalize<<<(total + 255) / 256, 256>>>(x.data_ptr<float>(), mean.data_ptr<float>(), var.data_ptr<float>(),
        weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(), C, HW, total, eps);
    return y;
}
"""
bn_ext = load_inline(
    name="bn_ext",
    cpp_sources="torch::Tensor batch_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, float eps);",
    cuda_sources=bn_source,
    functions=["batch_norm"],
)


class ModelNew(nn.Module):
    def __init__(self, num_features: int):
        super().__init__()
        self.bn = nn.BatchNorm2d(num_features)  # holds weight and bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return bn_ext.batch_norm(x, self.bn.weight, self.bn.bias, self.bn.eps)
