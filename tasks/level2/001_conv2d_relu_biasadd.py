"""Conv2d, ReLU, bias."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 128,
        "in_channels": 64,
        "out_channels": 128,
        "height": 128,
        "width": 128,
    },
    "small": {"batch_size": 4, "in_channels": 16, "out_channels": 32, "height": 24, "width": 40},
}

kernel_size = 3


class Model(nn.Module):
    """relu(conv(x)) + bias, with one bias per output channel."""

    def __init__(self, in_channels, out_channels, kernel_size, bias_shape):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        return torch.relu(self.conv(x)) + self.bias


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, (out_channels, 1, 1)]
