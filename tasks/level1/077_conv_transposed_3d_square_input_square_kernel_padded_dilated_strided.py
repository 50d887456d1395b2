"""Bias-free 3-D transposed convolution with stride, padding and dilation."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 16,
        "in_channels": 32,
        "out_channels": 64,
        "depth": 16,
        "height": 32,
        "width": 32,
    },
    "small": {
        "batch_size": 2,
        "in_channels": 6,
        "out_channels": 12,
        "depth": 5,
        "height": 9,
        "width": 9,
    },
}

kernel_size = 3
stride = 2
padding = 1
dilation = 2


class Model(nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, dilation, bias=False
    ):
        super().__init__()
        self.conv_transpose3d = nn.ConvTranspose3d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            bias=bias,
        )

    def forward(self, x):
        return self.conv_transpose3d(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, dilation]
