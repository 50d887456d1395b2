"""Conv2d, bias, scale, sigmoid, GroupNorm."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 128, "in_channels": 8, "out_channels": 32, "height": 256, "width": 256},
    "small": {"batch_size": 4, "in_channels": 8, "out_channels": 32, "height": 32, "width": 48},
}

kernel_size = 3
num_groups = 8

# The norm starts with weight 1 and bias 0: its affine part would go unchecked.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """group_norm(sigmoid((conv(x) + bias) * scale)), with one bias and scale per output channel."""

    def __init__(self, in_channels, out_channels, kernel_size, num_groups, bias_shape, scale_shape):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.group_norm = nn.GroupNorm(num_groups, out_channels)

    def forward(self, x):
        x = (self.conv(x) + self.bias) * self.scale
        return self.group_norm(torch.sigmoid(x))


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [
        in_channels,
        out_channels,
        kernel_size,
        num_groups,
        (out_channels, 1, 1),
        (out_channels, 1, 1),
    ]
