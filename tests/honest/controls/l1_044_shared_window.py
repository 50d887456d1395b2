import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

avg_src = """
#include <torch/extension.h>
// A block loads its window once: threads + kernel - 1 values (stride 1).
__global__ void avg_pool(const float* x, float* y, int length, int out_length, int kernel, int padding) {
    extern __shared__ float window[];
    const float* row = x + (size_t)blockIdx.y * length;
    int start = blockIdx.x * blockDim.x;
    for (int i = threadIdx.x; i < blockDim.x + kernel - 1; i += blockDim.x) {
        int at = start + i - padding;
        window[i] = at >= 0 && at < length ? row[at] : 0.0f;
    }
    __syncthreads();
    int o = start + threadIdx.x;
    if (o < out_length) {
        float sum = 0.0f;
        for (int k = 0; k < kernel; ++k) sum += window[threadIdx.x + k];
        y[(size_t)blockIdx.y * out_length + o] = sum / kernel;
    }
}
torch::Tensor avg_pool1d(torch::Tensor x, int kernel, int padding) {
    int length = x.size(2), out_length = length + 2 * padding - kernel + 1;
    auto y = torch::empty({x.size(0), x.size(1), out_length}, x.options());
    int threads = 128;
    avg_pool<<<dim3((out_length + threads - 1) / threads, x.size(0) * x.size(1)), threads, (threads + kernel - 1) * sizeof(float)>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), length, out_length, kernel, padding);
    return y;
}
"""
avg = load_inline(name="avg_pool1d", cpp_sources="torch::Tensor avg_pool1d(torch::Tensor x, int kernel, int padding);", cuda_sources=avg_src, functions=["avg_pool1d"])


class ModelNew(nn.Module):
    def __init__(self, kernel_size, stride=1, padding=0):
        super().__init__()
        if stride != 1:
            raise ValueError(f"expected stride 1, got {stride}")
        self.kernel_size = kernel_size
        self.padding = padding

    def forward(self, x):
        return avg.avg_pool1d(x, self.kernel_size, self.padding)
