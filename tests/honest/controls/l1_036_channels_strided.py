import torch
from torch.utils.cpp_extension import load_inline

rms = load_inline(
    name="rms",
    cpp_sources="torch::Tensor rms_norm(torch::Tensor x, double eps);",
    cuda_sources="""
#include <torch/extension.h>
// Neighbouring threads have neighbouring positions, so every channel's load is coalesced.
__global__ void rms_norm_kernel(const float* x, float* y, int channels, int hw, float eps) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= hw) return;
    const float* in = x + (size_t)blockIdx.y * channels * hw + p;
    float* out = y + (size_t)blockIdx.y * channels * hw + p;
    float sum = 0.f;
    for (int c = 0; c < channels; ++c) sum += in[c * hw] * in[c * hw];
    float inv = 1.0f / sqrtf(sum / channels + eps);
    for (int c = 0; c < channels; ++c) out[c * hw] = in[c * hw] * inv;
}
torch::Tensor rms_norm(torch::Tensor x, double eps) {
    auto y = torch::empty_like(x);
    int n = x.size(0), c = x.size(1), hw = x.numel() / (n * c);
    rms_norm_kernel<<<dim3((hw + 127) / 128, n), 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), c, hw, eps);
    return y;
}
""",
    functions=["rms_norm"],
)


class ModelNew(torch.nn.Module):
    def __init__(self, num_features: int, eps: float = 1e-5):
        super().__init__()
        self.num_features = num_features
        self.eps = eps

    def forward(self, x):
        return rms.rms_norm(x, self.eps)
