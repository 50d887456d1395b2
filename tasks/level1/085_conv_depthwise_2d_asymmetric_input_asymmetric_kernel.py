"""Bias-free depthwise 2-D convolution, kernel and input wider than high.

out_channels and groups are accepted and not used: both are in_channels.
"""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 32,
        "in_channels": 128,
        "out_channels": 128,
        "height": 128,
        "width": 256,
    },
    "small": {"batch_size": 2, "in_channels": 10, "out_channels": 10, "height": 29, "width": 53},
}

kernel_size_h = 3
kernel_size_w = 7
stride_h = 1
stride_w = 1
padding_h = 0
padding_w = 0
dilation_h = 1
dilation_w = 1
groups = 128


class Model(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size_h,
        kernel_size_w,
        stride_h,
        stride_w,
        padding_h,
        padding_w,
        dilation_h,
        dilation_w,
        groups,
        bias=False,
    ):
        super().__init__()
        self.conv2d = nn.Conv2d(
            in_channels,
            in_channels,
            (kernel_size_h, kernel_size_w),
            stride=(stride_h, stride_w),
            padding=(padding_h, padding_w),
            dilation=(dilation_h, dilation_w),
            groups=in_channels,
            bias=bias,
        )

    def forward(self, x):
        return self.conv2d(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [
        in_channels,
        out_channels,
        kernel_size_h,
        kernel_size_w,
        stride_h,
        stride_w,
        padding_h,
        padding_w,
        dilation_h,
        dilation_w,
        groups,
    ]
