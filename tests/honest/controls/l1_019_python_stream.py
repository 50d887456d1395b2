import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="stage",
    cpp_sources="void stage_copy(torch::Tensor x, torch::Tensor y); void stage_clip(torch::Tensor y);",
    cuda_sources=r"""
    #include <torch/extension.h>
    __global__ void copy_k(const float* x, float* y, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = x[i];
    }
    __global__ void clip_k(float* y, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n && y[i] < 0.f) y[i] = 0.f;
    }
    void stage_copy(torch::Tensor x, torch::Tensor y) {
        int n = x.numel();
        copy_k<<<(n + 191) / 192, 192>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    }
    void stage_clip(torch::Tensor y) {
        int n = y.numel();
        clip_k<<<(n + 191) / 192, 192>>>(y.data_ptr<float>(), n);
    }
    """,
    functions=["stage_copy", "stage_clip"],
)


class ModelNew(nn.Module):
    """Works in place on a scratch tensor that it owns."""

    def forward(self, x):
        y = torch.empty_like(x)
        ext.stage_copy(x, y)
        ext.stage_clip(y)
        return y
