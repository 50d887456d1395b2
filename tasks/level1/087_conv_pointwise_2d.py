"""Bias-free pointwise (1 x 1) 2-D convolution."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 16,
        "in_channels": 64,
        "out_channels": 128,
        "height": 1024,
        "width": 1024,
    },
    "medium": {
        "batch_size": 8,
        "in_channels": 64,
        "out_channels": 128,
        "height": 1024,
        "width": 1024,
    },
    "small": {"batch_size": 2, "in_channels": 12, "out_channels": 20, "height": 45, "width": 45},
}


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, bias=False):
        super().__init__()
        self.conv1d = nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=bias)

    def forward(self, x):
        return self.conv1d(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels]
