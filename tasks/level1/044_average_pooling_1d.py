"""1-D average pooling, the padding counted; windows overlap."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 64, "channels": 128, "length": 65536},
    "small": {"batch_size": 3, "channels": 7, "length": 1027},
}

kernel_size = 8
stride = 1
padding = 4


class Model(nn.Module):
    def __init__(self, kernel_size, stride, padding):
        super().__init__()
        self.avg_pool = nn.AvgPool1d(kernel_size, stride=stride, padding=padding)

    def forward(self, x):
        return self.avg_pool(x)


def get_inputs():
    return [torch.rand(batch_size, channels, length)]


def get_init_inputs():
    return [kernel_size, stride, padding]
