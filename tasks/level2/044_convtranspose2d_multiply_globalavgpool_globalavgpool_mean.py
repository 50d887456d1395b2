"""ConvTranspose2d, multiply, global average pool, global average pool."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 16, "in_channels": 64, "out_channels": 128, "height": 128, "width": 128},
    "small": {"batch_size": 4, "in_channels": 16, "out_channels": 32, "height": 16, "width": 24},
}

kernel_size = 3
stride = 2
padding = 1
output_padding = 1
multiplier = 0.5

# With the constructed weights the output is nearly the same for all inputs.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """mean(conv_transpose(x) * multiplier, over H and W), twice: (N, C_out, 1, 1)."""

    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, output_padding, multiplier
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        self.multiplier = multiplier

    def forward(self, x):
        x = self.conv_transpose(x) * self.multiplier
        x = torch.mean(x, dim=(2, 3), keepdim=True)
        return torch.mean(x, dim=(2, 3), keepdim=True)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, output_padding, multiplier]
