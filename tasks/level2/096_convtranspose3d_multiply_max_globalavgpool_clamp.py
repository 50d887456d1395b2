"""ConvTranspose3d, multiply, max pool, global average pool, clamp."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 128,
        "in_channels": 3,
        "out_channels": 16,
        "depth": 16,
        "height": 32,
        "width": 32,
    },
    "small": {
        "batch_size": 4,
        "in_channels": 3,
        "out_channels": 16,
        "depth": 6,
        "height": 8,
        "width": 10,
    },
}

kernel_size = 3
stride = 2
padding = 1
scale = 0.5
maxpool_kernel_size = 2

# With the constructed weights the output is nearly the same for all inputs.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """clamp(global_avg_pool(max_pool(conv_transpose(x) * scale)), 0, 1): (N, C_out, 1, 1, 1)."""

    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, scale, maxpool_kernel_size
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding
        )
        self.scale = scale
        self.maxpool = nn.MaxPool3d(maxpool_kernel_size)
        self.global_avg_pool = nn.AdaptiveAvgPool3d((1, 1, 1))

    def forward(self, x):
        x = self.maxpool(self.conv_transpose(x) * self.scale)
        return torch.clamp(self.global_avg_pool(x), min=0.0, max=1.0)


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, scale, maxpool_kernel_size]
