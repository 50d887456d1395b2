import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

separable = """
#include <torch/extension.h>
__global__ void depthwise(const float* x, const float* w, float* t, int c, int h, int wd, int k, int pad) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= h * wd) return;
    int y = i / wd, z = i % wd, ch = blockIdx.y % c;
    const float* in = x + (size_t)blockIdx.y * h * wd;
    float acc = 0.f;
    for (int r = 0; r < k; ++r)
        for (int s = 0; s < k; ++s) {
            int yy = y + r - pad, zz = z + s - pad;
            if (yy >= 0 && yy < h && zz >= 0 && zz < wd) acc += in[yy * wd + zz] * w[(ch * k + r) * k + s];
        }
    t[(size_t)blockIdx.y * h * wd + i] = acc;
}
__global__ void pointwise(const float* t, const float* w, float* y, int cin, int cout, int hw) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, co = blockIdx.y, n = blockIdx.z;
    if (i >= hw) return;
    float acc = 0.f;
    for (int ci = 0; ci < cin; ++ci) acc += t[((size_t)n * cin + ci) * hw + i] * w[co * cin + ci];
    y[((size_t)n * cout + co) * hw + i] = acc;
}
void separable_conv(torch::Tensor x, torch::Tensor dw, torch::Tensor pw, torch::Tensor scratch, torch::Tensor y, int pad) {
    int n = x.size(0), c = x.size(1), h = x.size(2), w = x.size(3), cout = pw.size(0), hw = h * w;
    depthwise<<<dim3((hw + 127) / 128, n * c), 128>>>(x.data_ptr<float>(), dw.data_ptr<float>(), scratch.data_ptr<float>(), c, h, w, dw.size(2), pad);
    pointwise<<<dim3((hw + 127) / 128, cout, n), 128>>>(scratch.data_ptr<float>(), pw.data_ptr<float>(), y.data_ptr<float>(), c, cout, hw);
}
"""
ext = load_inline(
    name="separable",
    cpp_sources="void separable_conv(torch::Tensor x, torch::Tensor dw, torch::Tensor pw, torch::Tensor scratch, torch::Tensor y, int pad);",
    cuda_sources=separable,
    functions=["separable_conv"],
)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, bias=False):
        super().__init__()
        self.depthwise = nn.Conv2d(in_channels, in_channels, kernel_size, stride, padding, dilation, groups=in_channels, bias=bias)
        self.pointwise = nn.Conv2d(in_channels, out_channels, 1, bias=bias)
        self.padding = padding
        self._scratch = None  # allocated once, used again by every call

    def forward(self, x):
        if self._scratch is None or self._scratch.shape != x.shape:
            self._scratch = torch.empty_like(x)
        y = x.new_empty(x.shape[0], self.pointwise.out_channels, *x.shape[2:])
        ext.separable_conv(x, self.depthwise.weight, self.pointwise.weight, self._scratch, y, self.padding)
        return y
