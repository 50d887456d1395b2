"""Small candidates for L1/19 (ReLU) and others, as tests write them."""

RELU_KERNEL = """
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
"""
RELU_LAUNCH = """
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
"""
PLAIN_FORWARD = "        return ext.run(x)"


def candidate(
    kernel=RELU_KERNEL,
    launch=RELU_LAUNCH,
    *,
    output="torch::empty_like(x)",
    forward=PLAIN_FORWARD,
    prelude="",
    init="",
):
    """The text of a model_new.py with one extension that maps a tensor to a tensor."""
    return f'''import os
import signal
import time

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

{prelude}
cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
{kernel}
torch::Tensor run(torch::Tensor x) {{
    auto y = {output};
    int n = x.numel();
    {launch}
    return y;
}}
"""
ext = load_inline(
    name="ext",
    cpp_sources="torch::Tensor run(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["run"],
)


class ModelNew(nn.Module):
    def __init__(self, *args):
        super().__init__()
{init}

    def forward(self, x):
{forward}
'''


def forward(*lines):
    """A forward of several lines."""
    return "\n".join(f"        {line}" for line in lines)
