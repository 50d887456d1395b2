"""Bias-free 3-D transposed convolution, every side of kernel and input different."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 16,
        "in_channels": 32,
        "out_channels": 16,
        "depth": 16,
        "height": 32,
        "width": 64,
    },
    "small": {
        "batch_size": 2,
        "in_channels": 8,
        "out_channels": 6,
        "depth": 5,
        "height": 9,
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
        stride=(1, 1, 1),
        padding=(0, 0, 0),
        output_padding=(0, 0, 0),
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
            groups=groups,
            bias=bias,
        )

    def forward(self, x):
        return self.conv_transpose3d(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]
