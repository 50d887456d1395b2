"""AvgPool3d, ConvTranspose3d, clamp, spatial softmax, scale."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 32,
        "in_channels": 32,
        "out_channels": 64,
        "depth": 32,
        "height": 64,
        "width": 64,
    },
    "small": {
        "batch_size": 2,
        "in_channels": 8,
        "out_channels": 16,
        "depth": 8,
        "height": 12,
        "width": 16,
    },
}

kernel_size = 3
stride = 2
padding = 1
output_padding = 1
pool_kernel_size = 2
clamp_min = 0.0
clamp_max = 1.0

# Wide enough for both ends of the clamp to act.
LAWS = {"x": ("normal", 0.0, 20.0)}
# The scale starts at one: it would go unchecked.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """softmax(clamp(conv_transpose(avg_pool(x))), over D, H and W) * scale."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        output_padding,
        pool_kernel_size,
        clamp_min,
        clamp_max,
    ):
        super().__init__()
        self.avg_pool = nn.AvgPool3d(pool_kernel_size)
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max
        self.scale = nn.Parameter(torch.ones(1, out_channels, 1, 1, 1))

    def forward(self, x):
        x = self.conv_transpose(self.avg_pool(x))
        x = torch.clamp(x, self.clamp_min, self.clamp_max)
        x = torch.softmax(x.flatten(start_dim=2), dim=2).view(x.shape)
        return x * self.scale


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        output_padding,
        pool_kernel_size,
        clamp_min,
        clamp_max,
    ]
