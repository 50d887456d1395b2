"""Conv2d, tanh, scale, bias, max pool."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 128, "in_channels": 8, "out_channels": 64, "height": 256, "width": 256},
    "small": {"batch_size": 4, "in_channels": 8, "out_channels": 32, "height": 32, "width": 48},
}

kernel_size = 3
scaling_factor = 2.0
pool_kernel_size = 4


class Model(nn.Module):
    """max_pool(tanh(conv(x)) * scaling_factor + bias), with one bias per output channel."""

    def __init__(
        self, in_channels, out_channels, kernel_size, scaling_factor, bias_shape, pool_kernel_size
    ):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.scaling_factor = scaling_factor
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.max_pool = nn.MaxPool2d(pool_kernel_size)

    def forward(self, x):
        x = torch.tanh(self.conv(x)) * self.scaling_factor
        return self.max_pool(x + self.bias)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [
        in_channels,
        out_channels,
        kernel_size,
        scaling_factor,
        (out_channels, 1, 1),
        pool_kernel_size,
    ]
