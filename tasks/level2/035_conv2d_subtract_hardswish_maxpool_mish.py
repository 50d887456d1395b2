"""Conv2d, subtract, HardSwish, max pool, Mish."""

import torch
import torch.nn.functional as F
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
subtract_value = 0.5
pool_kernel_size = 2


class Model(nn.Module):
    """mish(max_pool(hardswish(conv(x) - subtract_value)))."""

    def __init__(self, in_channels, out_channels, kernel_size, subtract_value, pool_kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.subtract_value = subtract_value
        self.pool = nn.MaxPool2d(pool_kernel_size)

    def forward(self, x):
        x = F.hardswish(self.conv(x) - self.subtract_value)
        return F.mish(self.pool(x))


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, subtract_value, pool_kernel_size]
