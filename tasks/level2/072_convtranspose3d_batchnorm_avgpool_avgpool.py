"""ConvTranspose3d, BatchNorm3d, two average pools."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 64,
        "in_channels": 3,
        "out_channels": 16,
        "depth": 32,
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

# The norm starts with weight 1 and bias 0: its affine part would go unchecked.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """avg_pool(avg_pool(batch_norm(conv_transpose(x)))).

    `bias_shape` is accepted and not used.
    """

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, bias_shape):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding
        )
        self.batch_norm = nn.BatchNorm3d(out_channels)
        self.avg_pool1 = nn.AvgPool3d(2)
        self.avg_pool2 = nn.AvgPool3d(2)

    def forward(self, x):
        x = self.batch_norm(self.conv_transpose(x))
        return self.avg_pool2(self.avg_pool1(x))


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, (out_channels, 1, 1, 1)]
