"""3-D average pooling with stride, the padding counted."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 16, "channels": 32, "depth": 128, "height": 128, "width": 256},
    "small": {"batch_size": 2, "channels": 5, "depth": 19, "height": 23, "width": 35},
}

kernel_size = 3
stride = 2
padding = 1


class Model(nn.Module):
    def __init__(self, kernel_size, stride, padding):
        super().__init__()
        self.avg_pool = nn.AvgPool3d(kernel_size, stride=stride, padding=padding)

    def forward(self, x):
        return self.avg_pool(x)


def get_inputs():
    return [torch.rand(batch_size, channels, depth, height, width)]


def get_init_inputs():
    return [kernel_size, stride, padding]
