"""Conv3d, LeakyReLU, add, clamp, GELU."""

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 128,
        "in_channels": 8,
        "out_channels": 64,
        "depth": 16,
        "height": 64,
        "width": 64,
    },
    "small": {
        "batch_size": 2,
        "in_channels": 8,
        "out_channels": 16,
        "depth": 8,
        "height": 12,
        "width": 16,
    },
}

kernel_size = 3


class Model(nn.Module):
    """gelu(clamp(leaky_relu(conv(x)) + sum_tensor, -1, 1)), with one summand per output channel."""

    def __init__(self, in_channels, out_channels, kernel_size, sum_tensor_shape):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.sum_tensor = nn.Parameter(torch.randn(sum_tensor_shape))

    def forward(self, x):
        x = F.leaky_relu(self.conv(x), negative_slope=0.2)
        x = torch.clamp(x + self.sum_tensor, min=-1.0, max=1.0)
        return F.gelu(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, (out_channels, 1, 1, 1)]
