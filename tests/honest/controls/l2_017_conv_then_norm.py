import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
__global__ void conv(const float* x, const float* w, const float* b, float* y, int C, int H, int W, int O, int R) {
    int OH = H - R + 1, OW = W - R + 1;
    int p = blockIdx.x * blockDim.x + threadIdx.x, o = blockIdx.y, n = blockIdx.z;
    if (p >= OH * OW) return;
    float acc = b[o];
    for (int c = 0; c < C; ++c)
        for (int r = 0; r < R; ++r)
            for (int s = 0; s < R; ++s)
                acc += x[((n * C + c) * H + p / OW + r) * W + p % OW + s] * w[((o * C + c) * R + r) * R + s];
    y[((size_t)n * O + o) * OH * OW + p] = acc;
}
// In place, a block for each plane.
__global__ void normalise(float* y, int hw, float eps, float divide_by) {
    __shared__ float sums[128];
    float* plane = y + (size_t)blockIdx.x * hw;
    float s = 0.f;
    for (int i = threadIdx.x; i < hw; i += 128) s += plane[i];
    sums[threadIdx.x] = s;
    __syncthreads();
    for (int d = 64; d; d >>= 1) {
        if (threadIdx.x < d) sums[threadIdx.x] += sums[threadIdx.x + d];
        __syncthreads();
    }
    float mean = sums[0] / hw;
    __syncthreads();
    s = 0.f;
    for (int i = threadIdx.x; i < hw; i += 128) s += (plane[i] - mean) * (plane[i] - mean);
    sums[threadIdx.x] = s;
    __syncthreads();
    for (int d = 64; d; d >>= 1) {
        if (threadIdx.x < d) sums[threadIdx.x] += sums[threadIdx.x + d];
        __syncthreads();
    }
    float inv = rsqrtf(sums[0] / hw + eps) / divide_by;
    for (int i = threadIdx.x; i < hw; i += 128) plane[i] = (plane[i] - mean) * inv;
}
torch::Tensor conv_norm(torch::Tensor x, torch::Tensor w, torch::Tensor b, double divide_by) {
    int N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3), O = w.size(0), R = w.size(2);
    int hw = (H - R + 1) * (W - R + 1);
    auto y = torch::empty({N, O, H - R + 1, W - R + 1}, x.options());
    conv<<<dim3((hw + 127) / 128, O, N), 128>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), C, H, W, O, R);
    normalise<<<N * O, 128>>>(y.data_ptr<float>(), hw, 1e-5f, divide_by);
    return y;
}
"""
ext = load_inline(name="conv_norm", cpp_sources="torch::Tensor conv_norm(torch::Tensor x, torch::Tensor w, torch::Tensor b, double divide_by);", cuda_sources=source, functions=["conv_norm"])


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, divide_by):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.instance_norm = nn.InstanceNorm2d(out_channels)
        self.divide_by = divide_by

    def forward(self, x):
        return ext.conv_norm(x, self.conv.weight, self.conv.bias, self.divide_by)
