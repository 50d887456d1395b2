"""Conv3d, ReLU, LeakyReLU, GELU, sigmoid, bias."""

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 64,
        "in_channels": 8,
        "out_channels": 32,
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


class Model(nn.Module):
    """sigmoid(gelu(leaky_relu(relu(conv(x))))) + bias, with one bias per output channel."""

    def __init__(self, in_channels, out_channels, kernel_size, bias_shape):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = torch.relu(self.conv(x))
        x = F.leaky_relu(x, negative_slope=0.01)
        x = F.gelu(x)
        return torch.sigmoid(x) + self.bias


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, (out_channels, 1, 1, 1)]
