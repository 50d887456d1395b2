import torch
from torch.utils.cpp_extension import load_inline

# Packed accessors carry shapes and strides, so the input need not be contiguous.
cuda = """
#include <torch/extension.h>
using In = torch::PackedTensorAccessor32<float, 3, torch::RestrictPtrTraits>;
using Out = torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits>;
__global__ void max_kernel(const In x, Out y) {
    const int b = blockIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= x.size(2)) return;
    float best = x[b][0][j];
    for (int i = 1; i < x.size(1); ++i) best = fmaxf(best, x[b][i][j]);
    y[b][j] = best;
}
torch::Tensor max_over_rows(torch::Tensor x) {
    auto y = torch::empty({x.size(0), x.size(2)}, x.options());
    const dim3 grid((x.size(2) + 31) / 32, x.size(0));
    max_kernel<<<grid, 32>>>(x.packed_accessor32<float, 3, torch::RestrictPtrTraits>(),
                             y.packed_accessor32<float, 2, torch::RestrictPtrTraits>());
    return y;
}
"""
ext = load_inline(name="max_rows", cpp_sources="torch::Tensor max_over_rows(torch::Tensor x);", cuda_sources=cuda, functions=["max_over_rows"])


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        if self.dim == 2:
            x = x.transpose(1, 2)
        return ext.max_over_rows(x)
