import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

scale = load_inline(
    name="scale",
    cpp_sources="torch::Tensor scale(torch::Tensor a, double s);",
    cuda_sources="""
#include <torch/extension.h>
__global__ void scale_kernel(const float* a, float s, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = s * a[i];
}
torch::Tensor scale(torch::Tensor a, double s) {
    torch::Tensor c = torch::empty_like(a);
    int n = a.numel();
    if (n == 0) return c;
    scale_kernel<<<(n - 1) / 128 + 1, 128>>>(a.data_ptr<float>(), (float)s, c.data_ptr<float>(), n);
    auto err = cudaGetLastError();
    if (err != cudaSuccess) throw std::runtime_error(cudaGetErrorString(err));
    return c;
}
""",
    functions=["scale"],
)


class ModelNew(nn.Module):
    def forward(self, A, s):
        return scale.scale(A, float(s))
