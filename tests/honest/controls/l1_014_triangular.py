import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Below the diagonal there is nothing to do, and of each dot product only row..col is not zero.
triu_source = """
#include <torch/extension.h>
__global__ void triu_matmul(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < N && col < N) {
        float acc = 0.0f;
        for (int k = row; k <= col; ++k)
            acc += A[row * N + k] * B[k * N + col];
        C[row * N + col] = row <= col ? acc : 0.0f;
    }
}
torch::Tensor triu_matmul_cuda(torch::Tensor A, torch::Tensor B) {
    int N = A.size(0);
    auto C = torch::empty_like(A);
    dim3 block(16, 16), grid((N + 15) / 16, (N + 15) / 16);
    triu_matmul<<<grid, block>>>(A.data_ptr<float>(), B.data_ptr<float>(), C.data_ptr<float>(), N);
    return C;
}
"""
triu = load_inline(
    name="triu", cpp_sources="torch::Tensor triu_matmul_cuda(torch::Tensor A, torch::Tensor B);",
    cuda_sources=triu_source, functions=["triu_matmul_cuda"])


class ModelNew(nn.Module):
    def forward(self, A, B):
        return triu.triu_matmul_cuda(A, B)
