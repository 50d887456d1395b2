import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = """
#include <torch/extension.h>

template <typename T> struct Relu {
    T floor;
    __device__ T operator()(T v) const { return v < floor ? floor : v; }
};

template <typename T, typename Op, int kPerThread>
__global__ void transform(const T* __restrict__ src, T* __restrict__ dst, int n, Op op) {
    int base = blockIdx.x * blockDim.x * kPerThread + threadIdx.x;
    #pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
        int i = base + k * blockDim.x;
        if (i < n) dst[i] = op(src[i]);
    }
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty(x.sizes(), x.options());
    int n = static_cast<int>(x.numel());
    constexpr int per = 4, threads = 64;
    dim3 grid((n + per * threads - 1) / (per * threads)), block(threads);
    transform<float, Relu<float>, per><<<grid, block>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), n, Relu<float>{0.0f});
    return y;
}
"""

module = load_inline(
    name="functor_relu",
    cpp_sources=["torch::Tensor relu(torch::Tensor x);"],
    cuda_sources=[CUDA],
    functions={"relu": "elementwise maximum with zero"},
    with_cuda=True,
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return module.relu(x.contiguous())
