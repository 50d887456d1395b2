import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

group_norm_cuda = """
#include <torch/extension.h>

struct Welford {
    float mean = 0.f, m2 = 0.f, n = 0.f;
    __device__ void push(float v) {
        n += 1.f;
        float d = v - mean;
        mean += d / n;
        m2 += d * (v - mean);
    }
    __device__ void merge(const Welford& o) {
        float total = n + o.n;
        if (total == 0.f) return;
        float d = o.mean - mean;
        mean += d * o.n / total;
        m2 += o.m2 + d * d * n * o.n / total;
        n = total;
    }
};

__global__ void group_norm_kernel(const float* x, const float* gamma, const float* beta, float* y,
                                  int channels, int hw, int groups, float eps) {
    __shared__ Welford all[128];
    int per = channels / groups, count = per * hw;
    int group = blockIdx.x % groups;
    const float* in = x + (long)blockIdx.x * count;
    float* out = y + (long)blockIdx.x * count;
    Welford w;
    for (int i = threadIdx.x; i < count; i += blockDim.x) w.push(in[i]);
    all[threadIdx.x] = w;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s /= 2) {
        if (threadIdx.x < s) all[threadIdx.x].merge(all[threadIdx.x + s]);
        __syncthreads();
    }
    float mean = all[0].mean, inv = rsqrtf(all[0].m2 / count + eps);
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        int c = group * per + i / hw;
        out[i] = (in[i] - mean) * inv * gamma[c] + beta[c];
    }
}

torch::Tensor group_norm(torch::Tensor x, torch::Tensor gamma, torch::Tensor beta, int64_t groups, double eps) {
    auto y = torch::empty_like(x);
    int n = x.size(0), c = x.size(1), hw = x.size(2) * x.size(3);
    group_norm_kernel<<<n * groups, 128>>>(x.data_ptr<float>(), gamma.data_ptr<float>(), beta.data_ptr<float>(),
                                           y.data_ptr<float>(), c, hw, groups, eps);
    return y;
}
"""
gn = load_inline(
    name="gn",
    cpp_sources="torch::Tensor group_norm(torch::Tensor, torch::Tensor, torch::Tensor, int64_t, double);",
    cuda_sources=group_norm_cuda,
    functions=["group_norm"],
)


class ModelNew(nn.Module):
    def __init__(self, num_features, num_groups):
        super().__init__()
        self.gn = nn.GroupNorm(num_groups=num_groups, num_channels=num_features)

    def forward(self, x):
        return gn.group_norm(x, self.gn.weight, self.gn.bias, self.gn.num_groups, self.gn.eps)
