"""Bias-free 1-D transposed convolution."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 64, "in_channels": 128, "out_channels": 128, "length": 65536},
    "small": {"batch_size": 3, "in_channels": 20, "out_channels": 20, "length": 517},
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
        self.conv1d_transpose = nn.ConvTranspose1d(
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
        return self.conv1d_transpose(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, length)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]
