import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

pool_src = """
#include <torch/extension.h>
__global__ void maxpool1d(const float* x, float* y, int planes, int length, int out_length,
                          int kernel, int stride, int padding, int dilation) {
    int o = blockIdx.x * blockDim.x + threadIdx.x;
    int plane = blockIdx.y;
    if (o >= out_length || plane >= planes) return;
    float best = -INFINITY;
    for (int k = 0; k < kernel; ++k) {
        int i = o * stride - padding + k * dilation;
        if (i >= 0 && i < length) best = fmaxf(best, x[plane * length + i]);
    }
    y[plane * out_length + o] = best;
}
torch::Tensor maxpool1d_cuda(torch::Tensor x, int kernel, int stride, int padding, int dilation) {
    int n = x.size(0), c = x.size(1), length = x.size(2);
    int out_length = (length + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
    auto y = torch::empty({n, c, out_length}, x.options());
    maxpool1d<<<dim3((out_length + 255) / 256, n * c), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n * c, length, out_length, kernel, stride, padding, dilation);
    return y;
}
"""
pool = load_inline(name="pool1d", cpp_sources="torch::Tensor maxpool1d_cuda(torch::Tensor x, int kernel, int stride, int padding, int dilation);", cuda_sources=pool_src, functions=["maxpool1d_cuda"])


class ModelNew(nn.Module):
    def __init__(self, kernel_size: int, stride: int = None, padding: int = 0, dilation: int = 1, return_indices: bool = False):
        super().__init__()
        self.args = (kernel_size, stride or kernel_size, padding, dilation)

    def forward(self, x):
        return pool.maxpool1d_cuda(x, *self.args)
