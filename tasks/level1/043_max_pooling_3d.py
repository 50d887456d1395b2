"""3-D max pooling with stride and dilation."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 16, "channels": 32, "depth": 128, "height": 128, "width": 128},
    "small": {"batch_size": 2, "channels": 5, "depth": 23, "height": 27, "width": 29},
}

kernel_size = 3
stride = 2
padding = 1
dilation = 3


class Model(nn.Module):
    def __init__(
        self, kernel_size, stride, padding, dilation, return_indices=False, ceil_mode=False
    ):
        super().__init__()
        self.maxpool = nn.MaxPool3d(
            kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            return_indices=return_indices,
            ceil_mode=ceil_mode,
        )

    def forward(self, x):
        return self.maxpool(x)


def get_inputs():
    return [torch.rand(batch_size, channels, depth, height, width)]


def get_init_inputs():
    return [kernel_size, stride, padding, dilation]
