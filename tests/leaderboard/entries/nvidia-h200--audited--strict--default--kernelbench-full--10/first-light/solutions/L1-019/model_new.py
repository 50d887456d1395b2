import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""
// made up for L1/19, variant 1-L1-019
__global__ void scale(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * 0.134364f;
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
