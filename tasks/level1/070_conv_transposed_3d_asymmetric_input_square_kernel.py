"""Bias-free 3-D transposed convolution, cubic kernel and input."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 8,
        "in_channels": 48,
        "out_channels": 24,
        "depth": 96,
        "height": 96,
        "width": 96,
    },
    "small": {
        "batch_size": 2,
        "in_channels": 12,
        "out_channels": 6,
        "depth": 9,
        "height": 9,
        "width": 9,
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
        output_padding=0,
        dilation=1,
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
            output_padding=output_padding,
            dilation=dilation,
            groups=groups,
            bias=bias,
        )

    def forward(self, x):
        return self.conv_transpose3d(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]
