"""Bias-free depthwise-separable 2-D convolution: depthwise, then pointwise."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 16, "in_channels": 64, "out_channels": 128, "height": 512, "width": 512},
    "small": {"batch_size": 2, "in_channels": 10, "out_channels": 20, "height": 33, "width": 33},
}

kernel_size = 3
stride = 1
padding = 1
dilation = 1


class Model(nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, dilation, bias=False
    ):
        super().__init__()
        self.depthwise = nn.Conv2d(
            in_channels,
            in_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=in_channels,
            bias=bias,
        )
        self.pointwise = nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=bias)

    def forward(self, x):
        return self.pointwise(self.depthwise(x))


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, dilation]
