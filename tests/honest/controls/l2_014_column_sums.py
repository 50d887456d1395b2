import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# sum_j (x @ W^T)_ij = x_i . (column sums of W): two matrix-vector products in place of a product.
source = """
#include <torch/extension.h>
__global__ void column_sums(const float* w, double* sums, int hidden, int inputs) {
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= inputs) return;
    double s = 0;
    for (int j = 0; j < hidden; ++j) s += w[(long)j * inputs + k];
    sums[k] = s;
}
__global__ void row_dots(const float* x, const double* sums, float* y, int inputs, double factor) {
    __shared__ double part[64];
    double s = 0;
    for (int k = threadIdx.x; k < inputs; k += 64) s += x[(long)blockIdx.x * inputs + k] * sums[k];
    part[threadIdx.x] = s;
    __syncthreads();
    for (int d = 32; d > 0; d >>= 1) {
        if (threadIdx.x < d) part[threadIdx.x] += part[threadIdx.x + d];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = part[0] * factor;
}
torch::Tensor forward(torch::Tensor x, torch::Tensor w, double scaling) {
    int batch = x.size(0), inputs = x.size(1), hidden = w.size(0);
    auto sums = torch::empty({inputs}, x.options().dtype(torch::kFloat64));
    auto y = torch::empty({batch, 1}, x.options());
    column_sums<<<(inputs + 63) / 64, 64>>>(w.data_ptr<float>(), sums.data_ptr<double>(), hidden, inputs);
    row_dots<<<batch, 64>>>(x.data_ptr<float>(), sums.data_ptr<double>(), y.data_ptr<float>(), inputs, scaling / 2);
    return y;
}
"""
ext = load_inline(name="column_sums", cpp_sources="torch::Tensor forward(torch::Tensor x, torch::Tensor w, double scaling);", cuda_sources=source, functions=["forward"])


class ModelNew(nn.Module):
    def __init__(self, input_size, hidden_size, scaling_factor):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden_size, input_size))
        self.scaling_factor = scaling_factor

    def forward(self, x):
        return ext.forward(x, self.weight, self.scaling_factor)
