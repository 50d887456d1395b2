"""Conv3d, GroupNorm, mean over each sample."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 128,
        "in_channels": 3,
        "out_channels": 24,
        "depth": 24,
        "height": 32,
        "width": 32,
    },
    "small": {
        "batch_size": 10,
        "in_channels": 3,
        "out_channels": 16,
        "depth": 8,
        "height": 12,
        "width": 14,
    },
}

kernel_size = 3
num_groups = 8

# The norm starts with weight 1 and bias 0: its affine part would go unchecked.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """mean(group_norm(conv(x)), over all but the batch): (N,).

    A norm with weight one and bias zero has mean zero: the affine parameters make the output.
    """

    def __init__(self, in_channels, out_channels, kernel_size, num_groups):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.group_norm = nn.GroupNorm(num_groups, out_channels)

    def forward(self, x):
        x = self.group_norm(self.conv(x))
        return torch.mean(x, dim=(1, 2, 3, 4))


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, num_groups]
