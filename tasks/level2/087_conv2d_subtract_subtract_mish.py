"""Conv2d, subtract, subtract, Mish."""

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = {
    "full": {"batch_size": 128, "in_channels": 8, "out_channels": 64, "height": 256, "width": 256},
    "small": {"batch_size": 4, "in_channels": 8, "out_channels": 32, "height": 32, "width": 48},
}

kernel_size = 3
subtract_value_1 = 0.5
subtract_value_2 = 0.2


class Model(nn.Module):
    """mish(conv(x) - subtract_value_1 - subtract_value_2)."""

    def __init__(self, in_channels, out_channels, kernel_size, subtract_value_1, subtract_value_2):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.subtract_value_1 = subtract_value_1
        self.subtract_value_2 = subtract_value_2

    def forward(self, x):
        x = self.conv(x) - self.subtract_value_1
        return F.mish(x - self.subtract_value_2)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, subtract_value_1, subtract_value_2]
