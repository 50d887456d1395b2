"""Linear, sigmoid, scale, residual add."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 1024, "input_size": 8192, "hidden_size": 8192},
    "small": {"batch_size": 48, "input_size": 400, "hidden_size": 512},
}

scaling_factor = 2.0


class Model(nn.Module):
    """sigmoid(y) * scaling_factor + y, where y = linear(x)."""

    def __init__(self, input_size, hidden_size, scaling_factor):
        super().__init__()
        self.gemm = nn.Linear(input_size, hidden_size)
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = self.gemm(x)
        return torch.sigmoid(x) * self.scaling_factor + x


def get_inputs():
    return [torch.rand(batch_size, input_size)]


def get_init_inputs():
    return [input_size, hidden_size, scaling_factor]
