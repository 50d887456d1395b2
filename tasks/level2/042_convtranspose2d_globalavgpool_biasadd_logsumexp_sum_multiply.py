"""ConvTranspose2d, global average pool, bias, logsumexp, sum, multiply."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 16, "in_channels": 64, "out_channels": 128, "height": 512, "width": 512},
    "small": {"batch_size": 14, "in_channels": 16, "out_channels": 32, "height": 12, "width": 18},
}

kernel_size = 3

# With the constructed weights the output is nearly the same for all inputs.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """10 * logsumexp(mean(conv_transpose(x), over H and W) + bias, over channels): (N, 1)."""

    def __init__(self, in_channels, out_channels, kernel_size, bias_shape):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = torch.mean(self.conv_transpose(x), dim=(2, 3), keepdim=True)
        x = torch.logsumexp(x + self.bias, dim=1, keepdim=True)
        return torch.sum(x, dim=(2, 3)) * 10.0


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, (out_channels, 1, 1)]
