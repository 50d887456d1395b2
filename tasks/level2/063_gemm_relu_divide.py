"""Linear, ReLU, divide."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 1024, "in_features": 8192, "out_features": 8192},
    "small": {"batch_size": 48, "in_features": 400, "out_features": 512},
}

divisor = 2.0


class Model(nn.Module):
    """relu(linear(x)) / divisor."""

    def __init__(self, in_features, out_features, divisor):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.divisor = divisor

    def forward(self, x):
        return torch.relu(self.linear(x)) / self.divisor


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, divisor]
