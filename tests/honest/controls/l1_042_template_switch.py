import torch
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
#include <limits>

template <int K>
__global__ void pool_kernel(const float* __restrict__ in, float* __restrict__ out, int H, int W, int OH, int OW, int S, int P, int D) {
    const int ow = blockIdx.x * blockDim.x + threadIdx.x, oh = blockIdx.y, plane = blockIdx.z;
    if (ow >= OW) return;
    in += (size_t)plane * H * W;
    float best = -std::numeric_limits<float>::infinity();
    #pragma unroll
    for (int r = 0; r < K; ++r) {
        const int h = oh * S - P + r * D;
        if (h < 0 || h >= H) continue;
        #pragma unroll
        for (int c = 0; c < K; ++c) {
            const int w = ow * S - P + c * D;
            if (w >= 0 && w < W) best = max(best, in[h * W + w]);
        }
    }
    out[((size_t)plane * OH + oh) * OW + ow] = best;
}

torch::Tensor max_pool2d(torch::Tensor x, int64_t k, int64_t s, int64_t p, int64_t d) {
    const int H = x.size(2), W = x.size(3), planes = x.size(0) * x.size(1);
    const int OH = (H + 2 * p - d * (k - 1) - 1) / s + 1, OW = (W + 2 * p - d * (k - 1) - 1) / s + 1;
    auto y = torch::empty({x.size(0), x.size(1), OH, OW}, x.options());
    dim3 grid((OW + 63) / 64, OH, planes);
    const float* in = x.data_ptr<float>();
    float* out = y.data_ptr<float>();
    switch (k) {
        case 2: pool_kernel<2><<<grid, 64>>>(in, out, H, W, OH, OW, s, p, d); break;
        case 3: pool_kernel<3><<<grid, 64>>>(in, out, H, W, OH, OW, s, p, d); break;
        case 4: pool_kernel<4><<<grid, 64>>>(in, out, H, W, OH, OW, s, p, d); break;
        default: TORCH_CHECK(false, "kernel_size: expected 2, 3 or 4, got ", k);
    }
    return y;
}
"""
ext = load_inline(name="max_pool2d", cpp_sources="torch::Tensor max_pool2d(torch::Tensor x, int64_t k, int64_t s, int64_t p, int64_t d);", cuda_sources=source, functions=["max_pool2d"])


class ModelNew(torch.nn.Module):
    def __init__(self, kernel_size, stride, padding, dilation):
        super().__init__()
        self.kernel_size, self.stride, self.padding, self.dilation = kernel_size, stride, padding, dilation

    def forward(self, x):
        return ext.max_pool2d(x, self.kernel_size, self.stride, self.padding, self.dilation)
