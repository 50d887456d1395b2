"""Bias-free depthwise 2-D convolution, square kernel, input wider than high."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 64,
        "in_channels": 128,
        "out_channels": 128,
        "height": 256,
        "width": 512,
    },
    "small": {"batch_size": 2, "in_channels": 10, "out_channels": 10, "height": 29, "width": 53},
}

kernel_size = 3
stride = 1
padding = 0


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, bias=False):
        super().__init__()
        self.conv2d = nn.Conv2d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            groups=in_channels,
            bias=bias,
        )

    def forward(self, x):
        return self.conv2d(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding]
