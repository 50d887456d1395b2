"""ConvTranspose3d, two max pools, sum over channels."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 16,
        "in_channels": 32,
        "out_channels": 64,
        "depth": 32,
        "height": 32,
        "width": 32,
    },
    "small": {
        "batch_size": 4,
        "in_channels": 4,
        "out_channels": 16,
        "depth": 7,
        "height": 8,
        "width": 10,
    },
}

kernel_size = 5
stride = 2
padding = 2


class Model(nn.Module):
    """sum(max_pool3(max_pool2(conv_transpose(x))), over channels): (N, 1, D', H', W')."""

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding
        )
        self.max_pool1 = nn.MaxPool3d(2)
        self.max_pool2 = nn.MaxPool3d(3)

    def forward(self, x):
        x = self.max_pool2(self.max_pool1(self.conv_transpose(x)))
        return torch.sum(x, dim=1, keepdim=True)


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding]
