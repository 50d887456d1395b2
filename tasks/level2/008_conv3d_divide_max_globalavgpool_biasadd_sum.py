"""Conv3d, divide, max pool, global average pool, bias, sum over channels."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 128,
        "in_channels": 8,
        "out_channels": 16,
        "depth": 16,
        "height": 64,
        "width": 64,
    },
    "small": {
        "batch_size": 10,
        "in_channels": 8,
        "out_channels": 16,
        "depth": 6,
        "height": 10,
        "width": 12,
    },
}

kernel_size = (3, 3, 3)
divisor = 2.0
pool_size = (2, 2, 2)
sum_dim = 1

# With the constructed weights the output is nearly the same for all inputs.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """sum(global_avg_pool(max_pool(conv(x) / divisor)) + bias, dim=1): (N, 1, 1, 1)."""

    def __init__(
        self, in_channels, out_channels, kernel_size, divisor, pool_size, bias_shape, sum_dim
    ):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.divisor = divisor
        self.max_pool = nn.MaxPool3d(pool_size)
        self.global_avg_pool = nn.AdaptiveAvgPool3d((1, 1, 1))
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.sum_dim = sum_dim

    def forward(self, x):
        x = self.conv(x) / self.divisor
        x = self.max_pool(x)
        x = self.global_avg_pool(x) + self.bias
        return torch.sum(x, dim=self.sum_dim)


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [
        in_channels,
        out_channels,
        kernel_size,
        divisor,
        pool_size,
        (out_channels, 1, 1, 1),
        sum_dim,
    ]
