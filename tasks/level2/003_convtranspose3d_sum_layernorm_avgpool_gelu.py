"""ConvTranspose3d, scalar add, LayerNorm, AvgPool3d, GELU."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 32,
        "in_channels": 32,
        "out_channels": 64,
        "depth": 16,
        "height": 32,
        "width": 32,
    },
    "small": {
        "batch_size": 2,
        "in_channels": 8,
        "out_channels": 24,
        "depth": 6,
        "height": 8,
        "width": 12,
    },
}

kernel_size = (3, 3, 3)
stride = (2, 2, 2)
padding = (1, 1, 1)
output_padding = (1, 1, 1)
sum_weight = 1.0
pool_kernel_size = (2, 2, 2)

# Of a small x, little of the norm's variance would be left beside sum_weight but rounding.
LAWS = {"x": ("mixed_unit",)}
# The norm starts with weight 1 and bias 0: its affine part would go unchecked.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """gelu(avg_pool(layer_norm(conv_transpose(x) + sum_weight))).

    The norm runs over the width, the last axis, which is as long as there are channels.
    """

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        output_padding,
        sum_weight,
        norm_shape,
        pool_kernel_size,
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        self.sum_weight = nn.Parameter(torch.tensor(sum_weight))
        self.norm = nn.LayerNorm(norm_shape)
        self.avg_pool = nn.AvgPool3d(pool_kernel_size)
        self.gelu = nn.GELU()

    def forward(self, x):
        x = self.conv_transpose(x) + self.sum_weight
        x = self.norm(x)
        x = self.avg_pool(x)
        return self.gelu(x)


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
        sum_weight,
        (out_channels,),
        pool_kernel_size,
    ]
