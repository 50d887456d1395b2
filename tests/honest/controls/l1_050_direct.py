import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

conv_source = """
#include <torch/extension.h>
struct Conv { int n, c, h, w, k, r, s, oh, ow, stride, pad; };

__global__ void conv2d_direct(const float* __restrict__ x, const float* __restrict__ wt,
                              const float* __restrict__ bias, float* __restrict__ y, const Conv p) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int k = blockIdx.y, n = blockIdx.z;
    if (i >= p.oh * p.ow) return;
    const int oh = i / p.ow, ow = i % p.ow;
    float acc = bias ? bias[k] : 0.f;
    for (int c = 0; c < p.c; ++c)
        for (int r = 0; r < p.r; ++r) {
            const int h = oh * p.stride - p.pad + r;
            if (h < 0 || h >= p.h) continue;
            for (int s = 0; s < p.s; ++s) {
                const int w = ow * p.stride - p.pad + s;
                if (w < 0 || w >= p.w) continue;
                acc += x[((n * p.c + c) * p.h + h) * p.w + w] * wt[((k * p.c + c) * p.r + r) * p.s + s];
            }
        }
    y[(n * p.k + k) * p.oh * p.ow + i] = acc;
}

torch::Tensor conv2d_cuda(torch::Tensor x, torch::Tensor wt, c10::optional<torch::Tensor> bias, int stride, int pad) {
    Conv p;
    p.n = x.size(0); p.c = x.size(1); p.h = x.size(2); p.w = x.size(3);
    p.k = wt.size(0); p.r = wt.size(2); p.s = wt.size(3);
    p.stride = stride; p.pad = pad;
    p.oh = (p.h + 2 * pad - p.r) / stride + 1;
    p.ow = (p.w + 2 * pad - p.s) / stride + 1;
    auto y = torch::empty({p.n, p.k, p.oh, p.ow}, x.options());
    conv2d_direct<<<dim3((p.oh * p.ow + 127) / 128, p.k, p.n), 128>>>(x.data_ptr<float>(), wt.data_ptr<float>(),
        bias.has_value() ? bias->data_ptr<float>() : nullptr, y.data_ptr<float>(), p);
    return y;
}
"""
conv = load_inline(
    name="conv2d_direct",
    cpp_sources="torch::Tensor conv2d_cuda(torch::Tensor x, torch::Tensor wt, c10::optional<torch::Tensor> bias, int stride, int pad);",
    cuda_sources=conv_source,
    functions=["conv2d_cuda"],
)


class ModelNew(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels=3, out_channels=96, kernel_size=11, stride=4, padding=2)

    def forward(self, x):
        return conv.conv2d_cuda(x, self.conv1.weight, self.conv1.bias, 4, 2)
