"""Conv2d, Mish spelled out, BatchNorm2d."""

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = {
    "full": {"batch_size": 64, "in_channels": 64, "out_channels": 128, "height": 128, "width": 128},
    "small": {"batch_size": 4, "in_channels": 16, "out_channels": 32, "height": 24, "width": 40},
}

kernel_size = 3

# The norm starts with weight 1 and bias 0: its affine part would go unchecked.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """batch_norm(tanh(softplus(y)) * y), where y = conv(x)."""

    def __init__(self, in_channels, out_channels, kernel_size, eps=1e-05, momentum=0.1):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bn = nn.BatchNorm2d(out_channels, eps=eps, momentum=momentum)

    def forward(self, x):
        x = self.conv(x)
        x = torch.tanh(F.softplus(x)) * x
        return self.bn(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]
