"""Bias-free grouped 3-D transposed convolution with stride, padding and output padding."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 8,
        "in_channels": 32,
        "out_channels": 32,
        "depth": 12,
        "height": 24,
        "width": 48,
    },
    "small": {
        "batch_size": 2,
        "in_channels": 12,
        "out_channels": 12,
        "depth": 5,
        "height": 7,
        "width": 11,
    },
}

kernel_size = (3, 5, 7)
stride = (2, 2, 2)
padding = (1, 2, 3)
output_padding = (1, 1, 1)
groups = 4


class Model(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        output_padding,
        groups,
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
    return [in_channels, out_channels, kernel_size, stride, padding, output_padding, groups]
