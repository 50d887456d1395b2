"""SqueezeNet fire module: 1x1 squeeze, then parallel 1x1 and 3x3 expansions, concatenated."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 128,
        "height": 256,
        "width": 256,
        "in_channels": 3,
        "squeeze_channels": 6,
        "expand1x1_channels": 64,
        "expand3x3_channels": 64,
    },
    # The output of full takes 4.4 GB, and the branches that it is made of as much again.
    "medium": {
        "batch_size": 32,
        "height": 256,
        "width": 256,
        "in_channels": 3,
        "squeeze_channels": 6,
        "expand1x1_channels": 64,
        "expand3x3_channels": 64,
    },
    "small": {
        "batch_size": 2,
        "height": 24,
        "width": 34,
        "in_channels": 3,
        "squeeze_channels": 6,
        "expand1x1_channels": 64,
        "expand3x3_channels": 64,
    },
}


class Model(nn.Module):
    def __init__(self, in_channels, squeeze_channels, expand1x1_channels, expand3x3_channels):
        super().__init__()
        self.squeeze = nn.Conv2d(in_channels, squeeze_channels, kernel_size=1)
        self.expand1x1 = nn.Conv2d(squeeze_channels, expand1x1_channels, kernel_size=1)
        self.expand3x3 = nn.Conv2d(squeeze_channels, expand3x3_channels, kernel_size=3, padding=1)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        x = self.relu(self.squeeze(x))
        return torch.cat([self.relu(self.expand1x1(x)), self.relu(self.expand3x3(x))], dim=1)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, squeeze_channels, expand1x1_channels, expand3x3_channels]
