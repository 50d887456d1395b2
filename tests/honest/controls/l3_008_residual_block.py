import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
__global__ void conv_kernel(const float* x, const float* w, float* y, int C, int H, int W, int O, int R, int pad) {
    int p = blockIdx.x * blockDim.x + threadIdx.x, o = blockIdx.y, n = blockIdx.z;
    if (p >= H * W) return;
    float acc = 0.f;
    for (int c = 0; c < C; ++c)
        for (int r = 0; r < R; ++r) {
            int h = p / W + r - pad;
            if (h < 0 || h >= H) continue;
            for (int s = 0; s < R; ++s) {
                int v = p % W + s - pad;
                if (v >= 0 && v < W) acc += x[((n * C + c) * H + h) * W + v] * w[((o * C + c) * R + r) * R + s];
            }
        }
    y[(n * O + o) * H * W + p] = acc;
}
// Statistics of a channel over the batch, folded with weight and bias to y = a x + b.
__global__ void fold_kernel(const float* x, const float* weight, const float* bias, float* a, float* b, int N, int C, int hw, float eps) {
    __shared__ double s1[128], s2[128];
    int c = blockIdx.x, t = threadIdx.x;
    double sum = 0, square = 0;
    for (int i = t; i < N * hw; i += 128) {
        double v = x[(i / hw * C + c) * hw + i % hw];
        sum += v;
        square += v * v;
    }
    s1[t] = sum; s2[t] = square;
    __syncthreads();
    for (int d = 64; d; d >>= 1) {
        if (t < d) { s1[t] += s1[t + d]; s2[t] += s2[t + d]; }
        __syncthreads();
    }
    if (t == 0) {
        double mean = s1[0] / (N * hw), var = s2[0] / (N * hw) - mean * mean;
        a[c] = weight[c] / sqrt(var + eps);
        b[c] = bias[c] - mean * a[c];
    }
}
__global__ void apply_kernel(const float* x, const float* a, const float* b, const float* r, const float* ra, const float* rb, float* y, int C, int hw, int total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int c = i / hw % C;
    float v = x[i] * a[c] + b[c];
    if (r != nullptr) v += r[i] * ra[c] + rb[c];
    y[i] = fmaxf(v, 0.f);
}
using torch::Tensor;
Tensor conv(Tensor x, Tensor w) {
    int R = w.size(2), hw = x.size(2) * x.size(3);
    auto y = torch::empty({x.size(0), w.size(0), x.size(2), x.size(3)}, x.options());
    conv_kernel<<<dim3((hw + 127) / 128, w.size(0), x.size(0)), 128>>>(x.data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>(), x.size(1), x.size(2), x.size(3), w.size(0), R, R / 2);
    return y;
}
std::vector<Tensor> fold(Tensor x, Tensor weight, Tensor bias, double eps) {
    auto a = torch::empty_like(weight), b = torch::empty_like(weight);
    fold_kernel<<<x.size(1), 128>>>(x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), a.data_ptr<float>(), b.data_ptr<float>(), x.size(0), x.size(1), x.size(2) * x.size(3), eps);
    return {a, b};
}
Tensor apply(Tensor x, Tensor a, Tensor b, c10::optional<Tensor> r, c10::optional<Tensor> ra, c10::optional<Tensor> rb) {
    auto y = torch::empty_like(x);
    int total = x.numel();
    apply_kernel<<<(total + 255) / 256, 256>>>(x.data_ptr<float>(), a.data_ptr<float>(), b.data_ptr<float>(), r ? r->data_ptr<float>() : nullptr, ra ? ra->data_ptr<float>() : nullptr, rb ? rb->data_ptr<float>() : nullptr, y.data_ptr<float>(), x.size(1), x.size(2) * x.size(3), total);
    return y;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("conv", &conv);
    m.def("fold", &fold);
    m.def("apply", &apply, py::arg("x"), py::arg("a"), py::arg("b"), py::arg("r") = py::none(), py::arg("ra") = py::none(), py::arg("rb") = py::none());
}
"""
block = load_inline(name="residual_block", cpp_sources="", cuda_sources=source)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, stride=1):
        super().__init__()
        assert stride == 1
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.downsample = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, 1, stride, bias=False),
            nn.BatchNorm2d(out_channels),
        )

    def forward(self, x):
        fold = lambda t, bn: block.fold(t, bn.weight, bn.bias, bn.eps)
        y = block.conv(x, self.conv1.weight)
        y = block.apply(y, *fold(y, self.bn1))
        y = block.conv(y, self.conv2.weight)
        r = block.conv(x, self.downsample[0].weight)
        return block.apply(y, *fold(y, self.bn2), r, *fold(r, self.downsample[1]))
