import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

linear_gelu = load_inline(
    name="linear_gelu",
    cpp_sources="torch::Tensor linear_gelu(torch::Tensor x, torch::Tensor w, torch::Tensor b);",
    cuda_sources="""
#include <torch/extension.h>
__device__ float gelu(float v) { return v * normcdff(v); }
__global__ void linear_gelu_kernel(const float* x, const float* w, const float* b, float* y, int N, int K) {
    // a warp for each output, so that both operands are read along rows
    int out = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (out >= N) return;
    float acc = 0.f;
    for (int k = lane; k < K; k += 32) acc += x[blockIdx.y * K + k] * w[out * K + k];
    for (int d = 16; d; d >>= 1) acc += __shfl_down_sync(0xffffffff, acc, d);
    if (lane == 0) y[blockIdx.y * N + out] = gelu(acc + b[out]);
}
torch::Tensor linear_gelu(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    int M = x.size(0), K = x.size(1), N = w.size(0);
    auto y = torch::empty({M, N}, x.options());
    linear_gelu_kernel<<<dim3((N + 7) / 8, M), 256>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), N, K);
    return y;
}
""",
    functions=["linear_gelu"],
)

softmax_ = load_inline(
    name="softmax_inplace",
    cpp_sources="void softmax_(torch::Tensor y);",
    cuda_sources="""
#include <torch/extension.h>
__global__ void softmax_kernel(float* y, int cols) {
    float* row = y + (size_t)blockIdx.x * cols;
    __shared__ float top, total;
    if (threadIdx.x < 32) {
        float m = -INFINITY;
        for (int c = threadIdx.x; c < cols; c += 32) m = fmaxf(m, row[c]);
        for (int d = 16; d; d >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, d));
        float s = 0.f;
        for (int c = threadIdx.x; c < cols; c += 32) s += expf(row[c] - m);
        for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(0xffffffff, s, d);
        if (threadIdx.x == 0) { top = m; total = s; }
    }
    __syncthreads();
    for (int c = threadIdx.x; c < cols; c += blockDim.x) row[c] = expf(row[c] - top) / total;
}
void softmax_(torch::Tensor y) { softmax_kernel<<<y.size(0), 128>>>(y.data_ptr<float>(), y.size(1)); }
""",
    functions=["softmax_"],
)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        y = linear_gelu.linear_gelu(x, self.linear.weight, self.linear.bias)
        softmax_.softmax_(y)
        return y
