"""Bias-free 3-D convolution, every side of the kernel different, cubic input."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 16,
        "in_channels": 3,
        "out_channels": 64,
        "depth": 64,
        "height": 64,
        "width": 64,
    },
    "small": {
        "batch_size": 2,
        "in_channels": 3,
        "out_channels": 20,
        "depth": 13,
        "height": 13,
        "width": 13,
    },
}

kernel_size = (3, 5, 7)


class Model(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=False,
    ):
        super().__init__()
        self.conv3d = nn.Conv3d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            bias=bias,
        )

    def forward(self, x):
        return self.conv3d(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]
