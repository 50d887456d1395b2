"""Bias-free 3-D transposed convolution with stride and padding; one group, no output padding."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 4,
        "in_channels": 32,
        "out_channels": 32,
        "depth": 32,
        "height": 64,
        "width": 128,
    },
    "small": {
        "batch_size": 2,
        "in_channels": 6,
        "out_channels": 6,
        "depth": 5,
        "height": 9,
        "width": 13,
    },
}

kernel_size = 3
stride = 2
padding = 1
output_padding = 4  # accepted, not used


class Model(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        output_padding,
        groups=1,
        bias=False,
    ):
        super().__init__()
        self.conv_transpose3d = nn.ConvTranspose3d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            groups=groups,
            bias=bias,
        )

    def forward(self, x):
        return self.conv_transpose3d(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, output_padding]
