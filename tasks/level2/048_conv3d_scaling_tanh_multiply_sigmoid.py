"""Conv3d, scale, tanh, multiply, sigmoid."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 128,
        "in_channels": 3,
        "out_channels": 16,
        "depth": 16,
        "height": 64,
        "width": 64,
    },
    "small": {
        "batch_size": 4,
        "in_channels": 3,
        "out_channels": 16,
        "depth": 8,
        "height": 16,
        "width": 20,
    },
}

kernel_size = 3
scaling_factor = 2


class Model(nn.Module):
    """sigmoid(tanh(conv(x) * scaling_factor) * bias), with one factor of each kind per channel.

    The number `scaling_factor` is accepted and not used: a random parameter has that name.
    """

    def __init__(self, in_channels, out_channels, kernel_size, scaling_factor, bias_shape):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.scaling_factor = nn.Parameter(torch.randn(bias_shape))
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = torch.tanh(self.conv(x) * self.scaling_factor)
        return torch.sigmoid(x * self.bias)


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, scaling_factor, (out_channels, 1, 1, 1)]
