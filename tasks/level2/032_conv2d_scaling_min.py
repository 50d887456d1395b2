"""Conv2d, scale, minimum over channels."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 64, "in_channels": 64, "out_channels": 128, "height": 256, "width": 256},
    "small": {"batch_size": 4, "in_channels": 16, "out_channels": 32, "height": 24, "width": 40},
}

kernel_size = 3
scale_factor = 2.0


class Model(nn.Module):
    """min(conv(x) * scale_factor, over channels): (N, 1, H', W')."""

    def __init__(self, in_channels, out_channels, kernel_size, scale_factor):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.scale_factor = scale_factor

    def forward(self, x):
        x = self.conv(x) * self.scale_factor
        return torch.min(x, dim=1, keepdim=True).values


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, scale_factor]
