"""Conv2d, minimum with a constant, bias, scale."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 128,
        "in_channels": 64,
        "out_channels": 128,
        "height": 128,
        "width": 128,
    },
    "small": {"batch_size": 4, "in_channels": 16, "out_channels": 32, "height": 24, "width": 40},
}

kernel_size = 3
constant_value = 0.5
scaling_factor = 2.0


class Model(nn.Module):
    """(min(conv(x), constant_value) + bias) * scaling_factor."""

    def __init__(
        self, in_channels, out_channels, kernel_size, constant_value, bias_shape, scaling_factor
    ):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.constant_value = constant_value
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = torch.clamp(self.conv(x), max=self.constant_value)
        return (x + self.bias) * self.scaling_factor


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [
        in_channels,
        out_channels,
        kernel_size,
        constant_value,
        (out_channels, 1, 1),
        scaling_factor,
    ]
