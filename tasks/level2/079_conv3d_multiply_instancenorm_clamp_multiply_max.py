"""Conv3d, multiply, InstanceNorm3d, clamp, multiply, maximum over channels."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 128,
        "in_channels": 3,
        "out_channels": 16,
        "depth": 16,
        "height": 32,
        "width": 32,
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
clamp_min = -1.0
clamp_max = 1.0


class Model(nn.Module):
    """max(y, dim=1), where y = clamp(instance_norm(conv(x) * multiplier)) * multiplier.

    The multiplier has one number per channel. Output: (N, D', H', W').
    """

    def __init__(
        self, in_channels, out_channels, kernel_size, multiplier_shape, clamp_min, clamp_max
    ):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.multiplier = nn.Parameter(torch.randn(multiplier_shape))
        self.instance_norm = nn.InstanceNorm3d(out_channels)
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max

    def forward(self, x):
        x = self.instance_norm(self.conv(x) * self.multiplier)
        x = torch.clamp(x, self.clamp_min, self.clamp_max)
        x = x * self.multiplier
        return torch.max(x, dim=1).values


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, (out_channels, 1, 1, 1), clamp_min, clamp_max]
