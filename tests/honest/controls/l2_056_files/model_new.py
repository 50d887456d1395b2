import os

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

_here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(_here, "linear_sigmoid_sum.cu")) as f:
    _cuda = f.read()

_ext = load_inline(
    name="linear_sigmoid_sum",
    cpp_sources="torch::Tensor linear_sigmoid_sum(torch::Tensor x, torch::Tensor w, torch::Tensor b);",
    cuda_sources=_cuda,
    functions=["linear_sigmoid_sum"],
    extra_include_paths=[_here],
)


class ModelNew(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.linear = nn.Linear(input_size, hidden_size)

    def forward(self, x):
        return _ext.linear_sigmoid_sum(x, self.linear.weight, self.linear.bias)
