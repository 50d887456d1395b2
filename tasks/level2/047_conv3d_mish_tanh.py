"""Conv3d, Mish, tanh."""

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 16,
        "in_channels": 32,
        "out_channels": 64,
        "depth": 32,
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
    """tanh(mish(conv(x)))."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size, stride, padding)

    def forward(self, x):
        return torch.tanh(F.mish(self.conv(x)))


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]
