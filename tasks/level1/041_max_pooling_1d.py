"""1-D max pooling with dilation; windows overlap."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 64, "channels": 192, "length": 65536},
    "medium": {"batch_size": 32, "channels": 192, "length": 65536},
    "small": {"batch_size": 3, "channels": 7, "length": 1027},
}

kernel_size = 8
stride = 1
padding = 4
dilation = 3
return_indices = False


class Model(nn.Module):
    def __init__(self, kernel_size, stride, padding, dilation, return_indices):
        super().__init__()
        self.maxpool = nn.MaxPool1d(
            kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            return_indices=return_indices,
        )

    def forward(self, x):
        return self.maxpool(x)


def get_inputs():
    return [torch.rand(batch_size, channels, length)]


def get_init_inputs():
    return [kernel_size, stride, padding, dilation, return_indices]
