"""Bias-free 2-D convolution, square kernel and input."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 16,
        "in_channels": 16,
        "out_channels": 128,
        "height": 1024,
        "width": 1024,
    },
    "medium": {
        "batch_size": 8,
        "in_channels": 16,
        "out_channels": 128,
        "height": 1024,
        "width": 1024,
    },
    "small": {"batch_size": 2, "in_channels": 12, "out_channels": 20, "height": 29, "width": 29},
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
        self.conv2d = nn.Conv2d(
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
        return self.conv2d(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]
