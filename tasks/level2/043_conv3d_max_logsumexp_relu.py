"""Conv3d, max pool, logsumexp over channels, ReLU."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 4,
        "in_channels": 32,
        "out_channels": 64,
        "depth": 32,
        "height": 128,
        "width": 128,
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
stride = 1
padding = 1


class Model(nn.Module):
    """relu(logsumexp(max_pool(conv(x)), over channels)): (N, 1, D', H', W')."""

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size, stride, padding)
        self.max_pool = nn.MaxPool3d(2, 2)

    def forward(self, x):
        x = self.max_pool(self.conv(x))
        return torch.relu(torch.logsumexp(x, dim=1, keepdim=True))


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding]
