"""Linear, divide, GELU."""

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = {
    "full": {"batch_size": 1024, "input_size": 8192, "output_size": 8192},
    "small": {"batch_size": 48, "input_size": 400, "output_size": 512},
}

divisor = 10.0

# Wide enough for the GELU to leave its linear part after the division.
LAWS = {"x": ("normal", 0.0, 10.0)}


class Model(nn.Module):
    """gelu(linear(x) / divisor)."""

    def __init__(self, input_size, output_size, divisor):
        super().__init__()
        self.linear = nn.Linear(input_size, output_size)
        self.divisor = divisor

    def forward(self, x):
        return F.gelu(self.linear(x) / self.divisor)


def get_inputs():
    return [torch.rand(batch_size, input_size)]


def get_init_inputs():
    return [input_size, output_size, divisor]
