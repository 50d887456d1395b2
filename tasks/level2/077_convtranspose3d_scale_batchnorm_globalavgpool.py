"""ConvTranspose3d, scale, BatchNorm3d, global average pool."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 16,
        "in_channels": 64,
        "out_channels": 128,
        "depth": 16,
        "height": 32,
        "width": 32,
    },
    "small": {
        "batch_size": 4,
        "in_channels": 8,
        "out_channels": 16,
        "depth": 4,
        "height": 8,
        "width": 10,
    },
}

kernel_size = 5
scale_factor = 2.0

# The norm starts with weight 1 and bias 0: its affine part would go unchecked.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """global_avg_pool(batch_norm(conv_transpose(x) * scale_factor)): (N, C_out, 1, 1, 1)."""

    def __init__(
        self, in_channels, out_channels, kernel_size, scale_factor, eps=1e-05, momentum=0.1
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size)
        self.scale_factor = scale_factor
        self.batch_norm = nn.BatchNorm3d(out_channels, eps=eps, momentum=momentum)
        self.global_avg_pool = nn.AdaptiveAvgPool3d((1, 1, 1))

    def forward(self, x):
        x = self.conv_transpose(x) * self.scale_factor
        return self.global_avg_pool(self.batch_norm(x))


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, scale_factor]
