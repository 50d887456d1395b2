"""Bias-free depthwise 2-D convolution with a k x 1 kernel."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 64, "in_channels": 8, "height": 512, "width": 512},
    "small": {"batch_size": 3, "in_channels": 5, "height": 45, "width": 45},
}

kernel_size = 3
stride = 1
padding = 0
dilation = 1


class Model(nn.Module):
    def __init__(self, in_channels, kernel_size, stride, padding, dilation, bias=False):
        super().__init__()
        self.conv2d = nn.Conv2d(
            in_channels,
            in_channels,
            (kernel_size, 1),
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=in_channels,
            bias=bias,
        )

    def forward(self, x):
        return self.conv2d(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, kernel_size, stride, padding, dilation]
