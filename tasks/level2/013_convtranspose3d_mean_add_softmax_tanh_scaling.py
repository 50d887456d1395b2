"""ConvTranspose3d, depth mean, bias, softmax over channels, tanh, scale."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 16,
        "in_channels": 16,
        "out_channels": 64,
        "depth": 32,
        "height": 128,
        "width": 128,
    },
    "small": {
        "batch_size": 2,
        "in_channels": 8,
        "out_channels": 16,
        "depth": 6,
        "height": 8,
        "width": 10,
    },
}

kernel_size = 3
stride = 1
padding = 1
scaling_factor = 2.0


class Model(nn.Module):
    """tanh(softmax(mean(conv_transpose(x), over depth) + bias, dim=1)) * s: (N, C_out, 1, H, W)."""

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, scaling_factor):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding
        )
        self.bias = nn.Parameter(torch.randn(1, out_channels, 1, 1, 1))
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = self.conv_transpose(x)
        x = torch.mean(x, dim=2, keepdim=True) + self.bias
        x = torch.softmax(x, dim=1)
        return torch.tanh(x) * self.scaling_factor


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, scaling_factor]
