"""Conv2d, ReLU, HardSwish spelled out."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 128, "in_channels": 8, "out_channels": 64, "height": 128, "width": 128},
    "small": {"batch_size": 4, "in_channels": 8, "out_channels": 32, "height": 32, "width": 48},
}

kernel_size = 3


class Model(nn.Module):
    """y * clamp((y + 3) / 6, 0, 1), where y = relu(conv(x))."""

    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        x = torch.relu(self.conv(x))
        return x * torch.clamp((x + 3) / 6, 0, 1)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]
