"""Linear, subtract, multiply, ReLU."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 1024, "in_features": 8192, "out_features": 8192},
    "small": {"batch_size": 48, "in_features": 400, "out_features": 512},
}

subtract_value = 2.0
multiply_value = 1.5

# Unit inputs give linear(x) a deviation of 0.58: it would seldom exceed subtract_value.
LAWS = {"x": ("normal", 0.0, 4.0)}
# With the constructed weights the output is nearly the same for all inputs.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """relu((linear(x) - subtract_value) * multiply_value)."""

    def __init__(self, in_features, out_features, subtract_value, multiply_value):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.subtract_value = subtract_value
        self.multiply_value = multiply_value

    def forward(self, x):
        x = self.linear(x) - self.subtract_value
        return torch.relu(x * self.multiply_value)


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, subtract_value, multiply_value]
