import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

softmax_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <float.h>

__global__ void softmax_kernel(const float* input, float* output, int cols) {
    extern __shared__ float sdata[];
    int tid = threadIdx.x;
    const float* in = input + blockIdx.x * cols;
    float* out = output + blockIdx.x * cols;

    // 1. the row's maximum
    float local_max = -FLT_MAX;
    for (int i = tid; i < cols; i += blockDim.x) local_max = fmaxf(local_max, in[i]);
    sdata[tid] = local_max;
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (tid < stride) sdata[tid] = fmaxf(sdata[tid], sdata[tid + stride]);
        __syncthreads();
    }
    float row_max = sdata[0];
    __syncthreads();

    // 2. the sum of exponentials
    float local_sum = 0.0f;
    for (int i = tid; i < cols; i += blockDim.x) local_sum += expf(in[i] - row_max);
    sdata[tid] = local_sum;
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (tid < stride) sdata[tid] += sdata[tid + stride];
        __syncthreads();
    }
    float inv = 1.0f / sdata[0];

    for (int i = tid; i < cols; i += blockDim.x) out[i] = expf(in[i] - row_max) * inv;
}

torch::Tensor softmax_cuda(torch::Tensor input) {
    auto output = torch::empty_like(input);
    int rows = input.size(0), cols = input.size(1);
    const int threads = 128;
    softmax_kernel<<<rows, threads, threads * sizeof(float)>>>(
        input.data_ptr<float>(), output.data_ptr<float>(), cols);
    return output;
}
"""
softmax = load_inline(
    name="softmax",
    cpp_sources="torch::Tensor softmax_cuda(torch::Tensor input);",
    cuda_sources=softmax_source,
    functions=["softmax_cuda"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return softmax.softmax_cuda(x)
