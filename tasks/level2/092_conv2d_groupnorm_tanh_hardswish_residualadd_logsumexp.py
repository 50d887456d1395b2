"""Conv2d, GroupNorm, tanh, HardSwish, residual add, logsumexp over channels."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 128,
        "in_channels": 8,
        "out_channels": 64,
        "height": 128,
        "width": 128,
        "groups": 16,
    },
    "small": {
        "batch_size": 4,
        "in_channels": 8,
        "out_channels": 32,
        "height": 32,
        "width": 48,
        "groups": 8,
    },
}

kernel_size = 3

# The norm starts with weight 1 and bias 0: its affine part would go unchecked.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """logsumexp(y + hardswish(tanh(group_norm(y))), dim=1), where y = conv(x): (N, 1, H', W')."""

    def __init__(self, in_channels, out_channels, kernel_size, groups, eps=1e-05):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.group_norm = nn.GroupNorm(groups, out_channels, eps=eps)
        self.tanh = nn.Tanh()
        self.hard_swish = nn.Hardswish()

    def forward(self, x):
        x = self.conv(x)
        residual = x
        x = self.hard_swish(self.tanh(self.group_norm(x)))
        return torch.logsumexp(residual + x, dim=1, keepdim=True)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, groups]
