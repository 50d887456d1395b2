"""Bias-free 2-D transposed convolution with stride, padding and dilation."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 16, "in_channels": 32, "out_channels": 64, "height": 64, "width": 128},
    "small": {"batch_size": 2, "in_channels": 12, "out_channels": 20, "height": 9, "width": 13},
}

kernel_size = 3
stride = 5
padding = 1
dilation = 2


class Model(nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, dilation, bias=False
    ):
        super().__init__()
        self.conv_transpose2d = nn.ConvTranspose2d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            bias=bias,
        )

    def forward(self, x):
        return self.conv_transpose2d(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, dilation]
