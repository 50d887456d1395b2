"""ConvTranspose2d, add, minimum with zero, GELU, multiply."""

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = {
    "full": {"batch_size": 128, "in_channels": 64, "out_channels": 128, "height": 64, "width": 64},
    "small": {"batch_size": 4, "in_channels": 16, "out_channels": 32, "height": 16, "width": 24},
}

kernel_size = 4
stride = 2
add_value = 0.5
multiply_value = 2.0

# Wide enough for values on both sides of the minimum.
LAWS = {"x": ("normal", 0.0, 4.0)}


class Model(nn.Module):
    """gelu(min(conv_transpose(x) + add_value, 0)) * multiply_value."""

    def __init__(self, in_channels, out_channels, kernel_size, stride, add_value, multiply_value):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(in_channels, out_channels, kernel_size, stride)
        self.add_value = add_value
        self.multiply_value = multiply_value

    def forward(self, x):
        x = torch.clamp(self.conv_transpose(x) + self.add_value, max=0.0)
        return F.gelu(x) * self.multiply_value


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, add_value, multiply_value]
