"""Bias-free 2-D convolution with padding and dilation, kernel wider than high, square input."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 8, "in_channels": 32, "out_channels": 64, "height": 512, "width": 512},
    "small": {"batch_size": 2, "in_channels": 8, "out_channels": 20, "height": 29, "width": 29},
}

kernel_size = (5, 9)
stride = 1
padding = (2, 4)
dilation = (2, 3)


class Model(nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, dilation, bias=False
    ):
        super().__init__()
        self.conv2d = nn.Conv2d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            bias=bias,
        )

    def forward(self, x):
        return self.conv2d(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, dilation]
