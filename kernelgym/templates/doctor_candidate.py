"""The smallest honest candidate for L1/19: `kernelgym doctor` judges it to see whether that works."""

from typing import Any

from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
__global__ void relu_kernel(const float* x, float* y, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    long n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ops = load_inline(
    name="doctor_relu",
    cpp_sources="torch::Tensor relu(torch::Tensor x);",
    cuda_sources=CUDA,
    functions=["relu"],
)


class ModelNew(nn.Module):
    """ReLU."""

    def forward(self, x: Any) -> Any:
        """One kernel over all elements."""
        return ops.relu(x.contiguous())
