"""ConvTranspose3d, clamp from below, divide."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 16,
        "in_channels": 64,
        "out_channels": 128,
        "depth": 24,
        "height": 48,
        "width": 48,
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
stride = 2
padding = 1
min_value = -1.0
divisor = 2.0

# Wide enough for the clamp to act.
LAWS = {"x": ("normal", 0.0, 8.0)}


class Model(nn.Module):
    """max(conv_transpose(x), min_value) / divisor."""

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, min_value, divisor):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding
        )
        self.min_value = min_value
        self.divisor = divisor

    def forward(self, x):
        return torch.clamp(self.conv_transpose(x), min=self.min_value) / self.divisor


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, min_value, divisor]
