"""ConvTranspose2d, BatchNorm2d, tanh, max pool, GroupNorm."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 512, "in_channels": 64, "out_channels": 128, "height": 32, "width": 32},
    "small": {"batch_size": 4, "in_channels": 16, "out_channels": 32, "height": 16, "width": 24},
}

kernel_size = 5
stride = 1
padding = 1
groups = 8
num_groups = 8

# The norm starts with weight 1 and bias 0: its affine part would go unchecked.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """group_norm(max_pool(tanh(batch_norm(conv_transpose(x))))).

    `groups` is accepted and not used: the convolution is not grouped.
    """

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, groups, num_groups):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride, padding
        )
        self.batch_norm = nn.BatchNorm2d(out_channels)
        self.tanh = nn.Tanh()
        self.max_pool = nn.MaxPool2d(2, 2)
        self.group_norm = nn.GroupNorm(num_groups, out_channels)

    def forward(self, x):
        x = self.batch_norm(self.conv_transpose(x))
        x = self.max_pool(self.tanh(x))
        return self.group_norm(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, groups, num_groups]
