"""ConvTranspose3d, add of a second input, HardSwish."""

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 128,
        "in_channels": 32,
        "out_channels": 64,
        "depth": 16,
        "height": 16,
        "width": 16,
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

# Both inputs and the output hold the batch in dimension 0.
SLICE = 0


class Model(nn.Module):
    """y * hardswish(y), where y = conv_transpose(x) + add_input.

    `bias` is part of the state and takes no part in the forward pass.
    """

    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, output_padding, bias_shape
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x, add_input):
        x = self.conv_transpose(x) + add_input
        return x * F.hardswish(x)


def get_inputs():
    return [
        torch.rand(batch_size, in_channels, depth, height, width),
        torch.rand(batch_size, out_channels, depth * stride, height * stride, width * stride),
    ]


def get_init_inputs():
    return [
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        output_padding,
        (out_channels, 1, 1, 1, 1),
    ]
