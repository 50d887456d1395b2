"""ConvTranspose2d, Mish, add, hardtanh, scale."""

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = {
    "full": {"batch_size": 128, "in_channels": 64, "out_channels": 64, "height": 128, "width": 128},
    "small": {"batch_size": 4, "in_channels": 16, "out_channels": 32, "height": 16, "width": 24},
}

kernel_size = 3
stride = 2
padding = 1
output_padding = 1
add_value = 0.5
scale = 2


class Model(nn.Module):
    """clamp(mish(conv_transpose(x)) + add_value, -1, 1) * scale."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        output_padding,
        add_value,
        scale,
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        self.add_value = add_value
        self.scale = scale

    def forward(self, x):
        x = F.mish(self.conv_transpose(x)) + self.add_value
        return F.hardtanh(x, min_val=-1.0, max_val=1.0) * self.scale


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
        add_value,
        scale,
    ]
