"""Bias-free 2-D transposed convolution padded to keep the size, kernel and input wider than high."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 8, "in_channels": 32, "out_channels": 32, "height": 512, "width": 1024},
    "small": {"batch_size": 2, "in_channels": 12, "out_channels": 12, "height": 21, "width": 38},
}

kernel_size = (3, 7)
stride = (1, 1)
padding = (1, 3)


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, bias=False):
        super().__init__()
        self.conv_transpose2d = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, bias=bias
        )

    def forward(self, x):
        return self.conv_transpose2d(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding]
