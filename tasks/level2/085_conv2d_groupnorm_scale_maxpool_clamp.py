"""Conv2d, GroupNorm, scale, max pool, clamp."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 128,
        "in_channels": 8,
        "out_channels": 64,
        "height": 128,
        "width": 128,
        "num_groups": 16,
    },
    "small": {
        "batch_size": 4,
        "in_channels": 8,
        "out_channels": 32,
        "height": 32,
        "width": 48,
        "num_groups": 8,
    },
}

kernel_size = 3
maxpool_kernel_size = 4
clamp_min = 0.0
clamp_max = 1.0

# Norm and scale start as the identity: they would go unchecked.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """clamp(max_pool(group_norm(conv(x)) * scale), clamp_min, clamp_max)."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        num_groups,
        scale_shape,
        maxpool_kernel_size,
        clamp_min,
        clamp_max,
    ):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.group_norm = nn.GroupNorm(num_groups, out_channels)
        self.scale = nn.Parameter(torch.ones(scale_shape))
        self.maxpool = nn.MaxPool2d(maxpool_kernel_size)
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max

    def forward(self, x):
        x = self.group_norm(self.conv(x)) * self.scale
        return torch.clamp(self.maxpool(x), self.clamp_min, self.clamp_max)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [
        in_channels,
        out_channels,
        kernel_size,
        num_groups,
        (out_channels, 1, 1),
        maxpool_kernel_size,
        clamp_min,
        clamp_max,
    ]
