"""ConvTranspose3d, LayerNorm, GELU, scale."""

import torch
import torch.nn.functional as F
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

kernel_size = 4
stride = 2
padding = 1
bias = True
eps = 1e-05
scaling_factor = 1.0

# The norm starts with weight 1 and bias 0: its affine part would go unchecked.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """gelu(layer_norm(conv_transpose(x))) * scaling_factor.

    The norm runs over the width, the last axis, which is as long as there are channels.
    """

    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, bias, eps, scaling_factor
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, bias=bias
        )
        self.layer_norm = nn.LayerNorm(out_channels, eps=eps)
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = self.layer_norm(self.conv_transpose(x))
        return F.gelu(x) * self.scaling_factor


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, bias, eps, scaling_factor]
