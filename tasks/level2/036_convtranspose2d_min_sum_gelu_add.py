"""ConvTranspose2d, minimum over channels, sum over height, GELU, bias."""

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = {
    "full": {"batch_size": 16, "in_channels": 64, "out_channels": 128, "height": 128, "width": 128},
    "small": {"batch_size": 4, "in_channels": 16, "out_channels": 32, "height": 4, "width": 24},
}

kernel_size = 3
stride = 2
padding = 1
output_padding = 1
bias_shape = (1, 1, 1)

LAWS = {"x": ("normal", 0.0, 0.5)}
# At full the sum of 256 constructed minima is -7.5 even for x = 0, where the GELU is 0 and the
# output is `bias`. With small kernels and a positive bias it is of the order of 1.
WEIGHTS = {
    "conv_transpose.weight": ("normal", 0.0, 0.004),
    "conv_transpose.bias": ("normal", 0.06, 0.01),
}


class Model(nn.Module):
    """gelu(sum(min(conv_transpose(x), over channels), over height)) + bias: (N, 1, 1, W')."""

    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, output_padding, bias_shape
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = torch.min(self.conv_transpose(x), dim=1, keepdim=True).values
        x = torch.sum(x, dim=2, keepdim=True)
        return F.gelu(x) + self.bias


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, output_padding, bias_shape]
