import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""
// made up for L1/23, variant 1-L1-023
__global__ void scale(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * 0.835765f;
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
