"""Conv2d, GELU, global average pool."""

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = {
    "full": {"batch_size": 128, "in_channels": 8, "out_channels": 64, "height": 256, "width": 256},
    "small": {"batch_size": 4, "in_channels": 8, "out_channels": 32, "height": 32, "width": 48},
}

kernel_size = 3

# With the constructed weights the output is nearly the same for all inputs.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """mean(gelu(conv(x)), over H and W): (N, C_out)."""

    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        x = F.gelu(self.conv(x))
        return F.adaptive_avg_pool2d(x, 1).squeeze(-1).squeeze(-1)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]
