"""Small right candidates, one for each way to write a kernel: ReLU (L1/19) and a product (L1/1)."""

CUDA_AGENT = {
    "model_new.py": """
import torch
from torch import nn
import cuda_extension


class ModelNew(nn.Module):
    def forward(self, x):
        return cuda_extension.relu_forward(x, config=1)
""",
    "kernels/relu.cu": r"""
#include <cuda_runtime.h>

template <int BLOCK>
__global__ void relu_kernel_impl(float* output, const float* input, int size) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < size) output[i] = input[i] > 0.0f ? input[i] : 0.0f;
}

extern "C" void relu_launcher(float* output, const float* input, int size, int config,
                              cudaStream_t stream) {
    switch (config) {
        case 1: relu_kernel_impl<256><<<(size + 255) / 256, 256, 0, stream>>>(output, input, size); break;
        default: relu_kernel_impl<128><<<(size + 127) / 128, 128, 0, stream>>>(output, input, size);
    }
}
""",
    "kernels/relu_binding.cpp": r"""
#include <torch/types.h>
#include <torch/csrc/utils/pybind.h>
#include <cuda_runtime.h>
#include <c10/cuda/CUDAStream.h>
#include "../binding_registry.h"

extern "C" void relu_launcher(float* output, const float* input, int size, int config,
                              cudaStream_t stream);

torch::Tensor relu_forward(torch::Tensor input, int config = 0) {
    TORCH_CHECK(input.is_cuda(), "Input must be a CUDA tensor");
    TORCH_CHECK(input.is_contiguous(), "Input must be contiguous");
    TORCH_CHECK(input.dtype() == torch::kFloat32, "Input must be float32");
    auto output = torch::empty_like(input);
    cudaStream_t stream = c10::cuda::getCurrentCUDAStream().stream();
    relu_launcher(output.data_ptr<float>(), input.data_ptr<float>(), input.numel(), config, stream);
    return output;
}

void register_relu(pybind11::module& m) {
    m.def("relu_forward", &relu_forward, "ReLU", py::arg("input"), py::arg("config") = 0);
}
REGISTER_BINDING(relu, register_relu);
""",
}
