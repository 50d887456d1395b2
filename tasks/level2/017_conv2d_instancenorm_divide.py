"""Conv2d, InstanceNorm2d, divide."""

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
divide_by = 2.0


class Model(nn.Module):
    """instance_norm(conv(x)) / divide_by, without affine parameters or running statistics."""

    def __init__(self, in_channels, out_channels, kernel_size, divide_by):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.instance_norm = nn.InstanceNorm2d(out_channels)
        self.divide_by = divide_by

    def forward(self, x):
        return self.instance_norm(self.conv(x)) / self.divide_by


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, divide_by]
