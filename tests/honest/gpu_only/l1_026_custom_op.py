import torch
from torch.utils.cpp_extension import load_inline

_ext = load_inline(
    name="gelu_op",
    cpp_sources="torch::Tensor gelu_cuda(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
__global__ void gelu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * normcdff(x[i]);
}
torch::Tensor gelu_cuda(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    gelu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
""",
    functions=["gelu_cuda"],
)


@torch.library.custom_op("honest_gelu::gelu", mutates_args=())
def gelu(x: torch.Tensor) -> torch.Tensor:
    return _ext.gelu_cuda(x)


@gelu.register_fake
def _(x):
    return torch.empty_like(x)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.ops.honest_gelu.gelu(x)
