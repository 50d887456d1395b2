"""Bias-free 2-D transposed convolution, kernel and input wider than high."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 64, "in_channels": 64, "out_channels": 128, "height": 128, "width": 256},
    "small": {"batch_size": 3, "in_channels": 12, "out_channels": 20, "height": 21, "width": 38},
}

kernel_size = (3, 5)


class Model(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=(1, 1),
        padding=(0, 0),
        output_padding=(0, 0),
        dilation=(1, 1),
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
            dilation=dilation,
            groups=groups,
            bias=bias,
        )

    def forward(self, x):
        return self.conv_transpose2d(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]
