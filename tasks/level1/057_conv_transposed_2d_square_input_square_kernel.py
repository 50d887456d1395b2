"""Bias-free 2-D transposed convolution, square kernel and input."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 8, "in_channels": 64, "out_channels": 64, "height": 1024, "width": 1024},
    "small": {"batch_size": 2, "in_channels": 12, "out_channels": 12, "height": 27, "width": 27},
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
        groups=1,
        bias=False,
    ):
        super().__init__()
        self.conv_transpose2d = nn.ConvTranspose2d(
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
        return self.conv_transpose2d(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]
