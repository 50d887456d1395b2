import torch
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="sum_dim",
    cpp_sources="torch::Tensor sum_dim(torch::Tensor x, int64_t dim);",
    cuda_sources="""
#include <torch/extension.h>
#include <vector>
__global__ void sum_kernel(const float* x, float* y, int outer, int extent, int inner) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= outer * inner) return;
    const float* p = x + (size_t)(i / inner) * extent * inner + i % inner;
    // Kahan's sum
    float sum = 0.f, carry = 0.f;
    for (int k = 0; k < extent; ++k) {
        float v = p[(size_t)k * inner] - carry;
        float next = sum + v;
        carry = (next - sum) - v;
        sum = next;
    }
    y[i] = sum;
}
torch::Tensor sum_dim(torch::Tensor x, int64_t dim) {
    std::vector<int64_t> shape = x.sizes().vec();
    int outer = 1, inner = 1, extent = shape[dim];
    for (int d = 0; d < dim; ++d) outer *= shape[d];
    for (int d = dim + 1; d < (int)shape.size(); ++d) inner *= shape[d];
    shape[dim] = 1;
    auto y = torch::empty(shape, x.options());
    sum_kernel<<<(outer * inner + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), outer, extent, inner);
    return y;
}
""",
    functions=["sum_dim"],
)


class ModelNew(torch.nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return ext.sum_dim(x, self.dim)
