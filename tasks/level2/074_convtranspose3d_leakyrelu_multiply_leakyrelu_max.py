"""ConvTranspose3d, LeakyReLU, multiply, LeakyReLU, max pool."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 16,
        "in_channels": 16,
        "out_channels": 32,
        "depth": 16,
        "height": 32,
        "width": 32,
    },
    "small": {
        "batch_size": 2,
        "in_channels": 8,
        "out_channels": 16,
        "depth": 6,
        "height": 8,
        "width": 10,
    },
}

kernel_size = 3
stride = 2
padding = 1
output_padding = 1


class Model(nn.Module):
    """max_pool(leaky_relu(leaky_relu(conv_transpose(x)) * multiplier)), one factor per channel."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        output_padding,
        multiplier_shape,
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        self.multiplier = nn.Parameter(torch.randn(multiplier_shape))
        self.leaky_relu = nn.LeakyReLU(0.2)
        self.max_pool = nn.MaxPool3d(2)

    def forward(self, x):
        x = self.leaky_relu(self.conv_transpose(x))
        x = self.leaky_relu(x * self.multiplier)
        return self.max_pool(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        output_padding,
        (out_channels, 1, 1, 1),
    ]
