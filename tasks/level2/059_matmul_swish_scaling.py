"""Linear, Swish, scale."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 128, "in_features": 32768, "out_features": 32768},
    "small": {"batch_size": 48, "in_features": 400, "out_features": 512},
}

scaling_factor = 2.0


class Model(nn.Module):
    """swish(linear(x)) * scaling_factor."""

    def __init__(self, in_features, out_features, scaling_factor):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = self.matmul(x)
        x = x * torch.sigmoid(x)
        return x * self.scaling_factor


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, scaling_factor]
