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
        case 1:
            relu_kernel_impl<256><<<(size + 255) / 256, 256, 0, stream>>>(output, input, size);
            break;
        default:
            relu_kernel_impl<128><<<(size + 127) / 128, 128, 0, stream>>>(output, input, size);
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

TRITON_RELU = """
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def relu_triton(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(y + at, tl.maximum(tl.load(x + at, mask=inside), 0.0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        relu_triton[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
        return y
"""

TRITON_AUTOTUNED = """
import torch
import triton
import triton.language as tl
from torch import nn


@triton.autotune(
    configs=[triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((512, 4), (1024, 4), (2048, 8))],
    key=["n"],
)
@triton.jit
def relu_autotuned(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(y + at, tl.maximum(tl.load(x + at, mask=inside), 0.0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        relu_autotuned[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)
        return y
"""

TRITON_PRODUCT = """
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def product_triton(a, b, c, m, n, k, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr):
    rows = tl.program_id(0) * TM + tl.arange(0, TM)
    columns = tl.program_id(1) * TN + tl.arange(0, TN)
    inner = tl.arange(0, TK)
    total = tl.zeros((TM, TN), dtype=tl.float32)
    for start in range(0, k, TK):
        at = start + inner
        left = tl.load(a + rows[:, None] * k + at[None, :],
                       mask=(rows[:, None] < m) & (at[None, :] < k), other=0.0)
        right = tl.load(b + at[:, None] * n + columns[None, :],
                        mask=(at[:, None] < k) & (columns[None, :] < n), other=0.0)
        total += tl.dot(left, right, input_precision="ieee")
    tl.store(c + rows[:, None] * n + columns[None, :], total,
             mask=(rows[:, None] < m) & (columns[None, :] < n))


class ModelNew(nn.Module):
    def forward(self, a, b):
        m, k = a.shape
        n = b.shape[1]
        c = torch.empty((m, n), dtype=a.dtype, device=a.device)
        grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
        product_triton[grid](a, b, c, m, n, k, TM=64, TN=64, TK=32)
        return c
"""

TRITON_MISTAKE = TRITON_RELU.replace("tl.maximum(tl.load", "tl.maximun(tl.load")

CUPY_RAW_KERNEL = '''
import cupy as cp
import torch
from torch import nn

relu = cp.RawKernel(r"""
extern "C" __global__ void relu_cupy(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}
""", "relu_cupy")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        stream = cp.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)
        with stream:
            relu(((n + 255) // 256,), (256,), (x.data_ptr(), y.data_ptr(), n))
        return y
'''

CUPY_RAW_MODULE = '''
import cupy as cp
import torch
from torch import nn

code = r"""
extern "C" __global__ void product_cupy(const float* a, const float* b, float* c, int m, int n, int k) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m || column >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
    c[row * n + column] = sum;
}
"""
product = cp.RawModule(code=code, options=("--std=c++17",)).get_function("product_cupy")


class ModelNew(nn.Module):
    def forward(self, a, b):
        m, k = a.shape
        n = b.shape[1]
        c = torch.empty((m, n), dtype=a.dtype, device=a.device)
        with cp.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            product(((n + 15) // 16, (m + 15) // 16), (16, 16),
                    (a.data_ptr(), b.data_ptr(), c.data_ptr(), m, n, k))
        return c
'''

CUPY_OPERATOR = """
import cupy as cp
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        with cp.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            return torch.from_dlpack(cp.maximum(cp.from_dlpack(x), 0.0))
"""

PYCUDA_SOURCE_MODULE = '''
import pycuda.driver as driver
import torch
from pycuda.compiler import SourceModule
from torch import nn

driver.init()
context = driver.Device(torch.cuda.current_device()).retain_primary_context()
context.push()
relu = SourceModule(r"""
__global__ void relu_pycuda(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
""").get_function("relu_pycuda")
relu.prepare("PPi")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        relu.prepared_call(((n + 255) // 256, 1), (256, 1, 1), x.data_ptr(), y.data_ptr(), n)
        return y
'''

PYCUDA_MISTAKE = PYCUDA_SOURCE_MODULE.replace("fmaxf", "fmaxq")

_LAUNCHER = '''
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="ext", cpp_sources="void launch(torch::Tensor x, torch::Tensor y);",
                  functions=["launch"], cuda_sources=r"""
#include <torch/extension.h>
__global__ void relu_launched(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
void launch(torch::Tensor x, torch::Tensor y) {
    int n = x.numel();
    relu_launched<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
}
""")
'''

CUSTOM_OPERATOR = (
    _LAUNCHER
    + """

@torch.library.custom_op("mine::relu", mutates_args=())
def relu(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    ext.launch(x, y)
    return y


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.mine.relu(x)
"""
)

LIBRARY_IMPL = (
    _LAUNCHER
    + """

def relu(x):
    y = torch.empty_like(x)
    ext.launch(x, y)
    return y


library = torch.library.Library("mine", "DEF")
library.define("relu(Tensor x) -> Tensor")
# On the emulator the same tensors are a CPU's.
library.impl("relu", relu, "CUDA")
library.impl("relu", relu, "CPU")


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.mine.relu(x)
"""
)

# Launches a kernel, and has torch compute what it returns, out of forward's sight.
CUSTOM_OPERATOR_THAT_HIDES_ATEN = CUSTOM_OPERATOR.replace(
    "    ext.launch(x, y)\n    return y", "    ext.launch(x, y)\n    return x.clamp_min(0)"
)

TRITON_IN_CUSTOM_OPERATOR = TRITON_RELU.replace(
    "class ModelNew",
    """@torch.library.custom_op("mine::relu", mutates_args=())
def relu(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    n = x.numel()
    relu_triton[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
    return y


class ModelNew""",
).replace(
    """        y = torch.empty_like(x)
        n = x.numel()
        relu_triton[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
        return y
""",
    "        return relu(x)\n",
)

CUDNN_RELU = '''
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cudnn/Handle.h>
#include <cudnn.h>
torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    cudnnHandle_t handle = at::native::getCudnnHandle();
    cudnnTensorDescriptor_t shape;
    cudnnActivationDescriptor_t relu;
    cudnnCreateTensorDescriptor(&shape);
    cudnnCreateActivationDescriptor(&relu);
    cudnnSetTensor4dDescriptor(shape, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, x.size(0), 1, 1,
                               x.numel() / x.size(0));
    cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0.0);
    const float one = 1.0f, zero = 0.0f;
    AT_CUDNN_CHECK(cudnnActivationForward(handle, relu, &one, shape, x.data_ptr<float>(), &zero,
                                          shape, y.data_ptr<float>()));
    cudnnDestroyActivationDescriptor(relu);
    cudnnDestroyTensorDescriptor(shape);
    return y;
}
"""
ext = load_inline(name="activation", cpp_sources=source, functions=["run"], with_cuda=True)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x)
'''

LOADED_FILES = {
    "model_new.py": """
import os

import torch
from torch import nn
from torch.utils.cpp_extension import load

here = os.path.dirname(os.path.abspath(__file__))
ext = load(name="ext", sources=[os.path.join(here, "relu.cpp"), os.path.join(here, "relu.cu")],
           extra_cuda_cflags=["-O3"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x)
""",
    "relu.cpp": r"""
#include <torch/extension.h>
torch::Tensor run(torch::Tensor x);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
""",
    "relu.cu": r"""
#include <torch/extension.h>
__global__ void relu_loaded(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    relu_loaded<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
""",
}

# `Tensor::storage` is torch's, and not the stand-in's.
REAL_HEADERS = LOADED_FILES | {
    "relu.cu": LOADED_FILES["relu.cu"].replace(
        "    auto y = torch::empty_like(x);",
        "    TORCH_CHECK(x.storage().nbytes() > 0);\n    auto y = torch::empty_like(x);",
    )
}

CPP_METHOD_THAT_COMPUTES = LOADED_FILES | {
    "relu.cu": LOADED_FILES["relu.cu"].replace("return y;", "return y.clamp_min(0);")
}
