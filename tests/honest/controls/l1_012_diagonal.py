import torch
from torch.utils.cpp_extension import load_inline

diag_src = """
#include <torch/extension.h>
__global__ void diag_mul(const float* d, const float* b, float* c, int m, int n) {
    __shared__ float factor;                 // one row a block
    if (threadIdx.x == 0) factor = d[blockIdx.x];
    __syncthreads();
    for (int j = threadIdx.x; j < n; j += blockDim.x)
        c[blockIdx.x * n + j] = factor * b[blockIdx.x * n + j];
}
torch::Tensor diag_mul_cuda(torch::Tensor d, torch::Tensor b) {
    TORCH_CHECK(d.dim() == 1 && b.dim() == 2);
    auto c = torch::empty_like(b);
    diag_mul<<<b.size(0), 128>>>(d.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), b.size(0), b.size(1));
    return c;
}
"""
diag = load_inline("diag_mul", "torch::Tensor diag_mul_cuda(torch::Tensor d, torch::Tensor b);", diag_src, functions="diag_mul_cuda")


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        return diag.diag_mul_cuda(A, B)
