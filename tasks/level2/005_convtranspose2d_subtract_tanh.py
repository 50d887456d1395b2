"""ConvTranspose2d, bias subtraction, tanh."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 32, "in_channels": 64, "out_channels": 64, "height": 256, "width": 256},
    "small": {"batch_size": 4, "in_channels": 16, "out_channels": 32, "height": 16, "width": 24},
}

kernel_size = 4


class Model(nn.Module):
    """tanh(conv_transpose(x) - bias), with one bias per output channel."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        bias_shape,
        stride=2,
        padding=1,
        output_padding=1,
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        return torch.tanh(self.conv_transpose(x) - self.bias)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, (out_channels, 1, 1)]
