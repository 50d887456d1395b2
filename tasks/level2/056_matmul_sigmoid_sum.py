"""Linear, sigmoid, sum over features."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 128, "input_size": 32768, "hidden_size": 32768},
    "small": {"batch_size": 48, "input_size": 400, "hidden_size": 512},
}

# With the constructed weights the output is nearly the same for all inputs.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """sum(sigmoid(linear(x)), over features): (N, 1)."""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.linear = nn.Linear(input_size, hidden_size)

    def forward(self, x):
        return torch.sum(torch.sigmoid(self.linear(x)), dim=1, keepdim=True)


def get_inputs():
    return [torch.rand(batch_size, input_size)]


def get_init_inputs():
    return [input_size, hidden_size]
