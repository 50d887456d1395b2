"""Conv2d, BatchNorm2d, scale."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 128, "in_channels": 8, "out_channels": 64, "height": 128, "width": 128},
    "small": {"batch_size": 4, "in_channels": 8, "out_channels": 32, "height": 32, "width": 48},
}

kernel_size = 3
scaling_factor = 2.0

# The norm starts with weight 1 and bias 0: its affine part would go unchecked.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """batch_norm(conv(x)) * scaling_factor."""

    def __init__(self, in_channels, out_channels, kernel_size, scaling_factor):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bn = nn.BatchNorm2d(out_channels)
        self.scaling_factor = scaling_factor

    def forward(self, x):
        return self.bn(self.conv(x)) * self.scaling_factor


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, scaling_factor]
