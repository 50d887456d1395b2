"""Conv3d, GroupNorm, minimum with a constant, clamp, dropout."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 128,
        "in_channels": 3,
        "out_channels": 16,
        "depth": 16,
        "height": 64,
        "width": 64,
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
groups = 8
min_value = 0.0
max_value = 1.0
dropout_p = 0.2

UNSCORABLE = (
    "min(y, 0) <= 0 for every y, so the clamp to [0, 1] makes it 0, and dropout keeps or zeroes "
    "a zero: the output is zero for all inputs, weights, modes and dropout masks."
)


class Model(nn.Module):
    """dropout(clamp(min(group_norm(conv(x)), min_value), min_value, max_value))."""

    def __init__(
        self, in_channels, out_channels, kernel_size, groups, min_value, max_value, dropout_p
    ):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.norm = nn.GroupNorm(groups, out_channels)
        self.min_value = min_value
        self.max_value = max_value
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, x):
        x = self.norm(self.conv(x))
        x = torch.clamp(x, max=self.min_value)
        x = torch.clamp(x, min=self.min_value, max=self.max_value)
        return self.dropout(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, groups, min_value, max_value, dropout_p]
