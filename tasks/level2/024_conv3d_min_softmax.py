"""Conv3d, minimum over depth, softmax over channels."""

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
        "batch_size": 4,
        "in_channels": 3,
        "out_channels": 16,
        "depth": 8,
        "height": 16,
        "width": 20,
    },
}

kernel_size = 3
dim = 2


class Model(nn.Module):
    """softmax(min(conv(x), over depth), dim=1): (N, C_out, H', W')."""

    def __init__(self, in_channels, out_channels, kernel_size, dim):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.dim = dim

    def forward(self, x):
        x = torch.min(self.conv(x), dim=self.dim).values
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, dim]
