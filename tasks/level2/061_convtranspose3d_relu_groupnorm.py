"""ConvTranspose3d, ReLU, GroupNorm."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 16,
        "in_channels": 64,
        "out_channels": 128,
        "depth": 32,
        "height": 32,
        "width": 32,
    },
    "small": {
        "batch_size": 2,
        "in_channels": 8,
        "out_channels": 16,
        "depth": 6,
        "height": 8,
        "width": 10,
    },
}

kernel_size = 3
groups = 8
bias = False

# The norm starts with weight 1 and bias 0: its affine part would go unchecked.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """group_norm(relu(conv_transpose(x))), without a convolution bias."""

    def __init__(self, in_channels, out_channels, kernel_size, groups, bias):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, bias=bias)
        self.relu = nn.ReLU()
        self.group_norm = nn.GroupNorm(groups, out_channels)

    def forward(self, x):
        return self.group_norm(self.relu(self.conv_transpose(x)))


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, groups, bias]
