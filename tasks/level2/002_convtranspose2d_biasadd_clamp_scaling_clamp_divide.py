"""ConvTranspose2d, bias, clamp, scale, clamp, divide."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 128, "in_channels": 64, "out_channels": 64, "height": 128, "width": 128},
    "small": {"batch_size": 4, "in_channels": 16, "out_channels": 32, "height": 16, "width": 24},
}

kernel_size = 3
stride = 2
padding = 1
output_padding = 1
scaling_factor = 2.0


class Model(nn.Module):
    """clamp(clamp(conv_transpose(x) + bias, 0, 1) * s, 0, 1) / s, with s the scaling factor."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        output_padding,
        bias_shape,
        scaling_factor,
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = self.conv_transpose(x) + self.bias
        x = torch.clamp(x, 0.0, 1.0)
        x = torch.clamp(x * self.scaling_factor, 0.0, 1.0)
        return x / self.scaling_factor


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        output_padding,
        (out_channels, 1, 1),
        scaling_factor,
    ]
