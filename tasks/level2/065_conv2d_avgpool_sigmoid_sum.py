"""Conv2d, average pool, sigmoid, sum over each sample."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 128, "in_channels": 8, "out_channels": 64, "height": 384, "width": 384},
    "small": {"batch_size": 12, "in_channels": 8, "out_channels": 32, "height": 18, "width": 26},
}

kernel_size = 3
pool_kernel_size = 4

# With the constructed weights the output is nearly the same for all inputs.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """sum(sigmoid(avg_pool(conv(x))), over all but the batch): (N,)."""

    def __init__(self, in_channels, out_channels, kernel_size, pool_kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.avg_pool = nn.AvgPool2d(pool_kernel_size)

    def forward(self, x):
        x = torch.sigmoid(self.avg_pool(self.conv(x)))
        return torch.sum(x, dim=(1, 2, 3))


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, pool_kernel_size]
