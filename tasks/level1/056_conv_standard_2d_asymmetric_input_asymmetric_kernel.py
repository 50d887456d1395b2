"""Bias-free 2-D convolution, kernel wider than high, input higher than wide."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 8, "in_channels": 64, "out_channels": 128, "height": 512, "width": 256},
    "small": {"batch_size": 2, "in_channels": 12, "out_channels": 20, "height": 41, "width": 27},
}

kernel_size = (5, 7)


class Model(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=(1, 1),
        padding=(0, 0),
        dilation=(1, 1),
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
