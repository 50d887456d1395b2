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

# Unit inputs make the minima so negative that the GELU is 0. At full constructed weights do so
# for any input (the sum over 256 rows is -7.5 for x = 0), and the output is `bias`.
LAWS = {"x": ("normal", 0.0, 0.5)}
# With the constructed weights the output is nearly the same for all inputs.
WEIGHTS = "perturbed"


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
