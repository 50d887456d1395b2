import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

conv_relu_bias_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

template <int KS>
__global__ void conv_relu_bias_kernel(const float* __restrict__ x, const float* __restrict__ w,
                                      const float* __restrict__ conv_bias, const float* __restrict__ bias,
                                      float* __restrict__ y, int C, int H, int W, int OC) {
    extern __shared__ float sw[];  // the filter of this block's output channel
    int oc = blockIdx.y, n = blockIdx.z;
    for (int i = threadIdx.x; i < C * KS * KS; i += blockDim.x) sw[i] = w[oc * C * KS * KS + i];
    __syncthreads();
    int OH = H - KS + 1, OW = W - KS + 1;
    int pos = blockIdx.x * blockDim.x + threadIdx.x;
    if (pos >= OH * OW) return;
    int oh = pos / OW, ow = pos - oh * OW;
    float acc = conv_bias[oc];
    for (int c = 0; c < C; ++c) {
        const float* xc = x + ((n * C + c) * H + oh) * W + ow;
        #pragma unroll
        for (int i = 0; i < KS; ++i)
            #pragma unroll
            for (int j = 0; j < KS; ++j)
                acc += xc[i * W + j] * sw[(c * KS + i) * KS + j];
    }
    y[(n * OC + oc) * OH * OW + pos] = fmaxf(acc, 0.0f) + bias[oc];
}

torch::Tensor conv_relu_bias(torch::Tensor x, torch::Tensor w, torch::Tensor conv_bias, torch::Tensor bias) {
    int N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3), OC = w.size(0);
    TORCH_CHECK(w.size(2) == 3 && w.size(3) == 3, "only 3x3");
    auto y = torch::empty({N, OC, H - 2, W - 2}, x.options());
    int positions = (H - 2) * (W - 2);
    dim3 grid((positions + 255) / 256, OC, N);
    conv_relu_bias_kernel<3><<<grid, 256, C * 9 * sizeof(float)>>>(
        x.data_ptr<float>(), w.data_ptr<float>(), conv_bias.data_ptr<float>(), bias.data_ptr<float>(),
        y.data_ptr<float>(), C, H, W, OC);
    return y;
}
"""
ext = load_inline(
    name="conv_relu_bias",
    cpp_sources="torch::Tensor conv_relu_bias(torch::Tensor x, torch::Tensor w, torch::Tensor conv_bias, torch::Tensor bias);",
    cuda_sources=conv_relu_bias_source,
    functions=["conv_relu_bias"],
)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, bias_shape):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        return ext.conv_relu_bias(x, self.conv.weight, self.conv.bias, self.bias)
