"""Bias-free 3-D convolution with a k x k x 1 kernel: the last dimension is only carried along."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 16,
        "in_channels": 3,
        "out_channels": 64,
        "height": 256,
        "width": 256,
        "depth": 10,
    },
    "small": {
        "batch_size": 2,
        "in_channels": 3,
        "out_channels": 20,
        "height": 23,
        "width": 23,
        "depth": 10,
    },
}

kernel_size = 3


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
            (kernel_size, kernel_size, 1),
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            bias=bias,
        )

    def forward(self, x):
        return self.conv3d(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width, depth)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]
