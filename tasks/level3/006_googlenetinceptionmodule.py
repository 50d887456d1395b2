"""GoogLeNet inception module: four parallel convolutional branches, concatenated on channels."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 10,
        "height": 224,
        "width": 224,
        "in_channels": 480,
        "out_1x1": 192,
        "reduce_3x3": 96,
        "out_3x3": 208,
        "reduce_5x5": 16,
        "out_5x5": 48,
        "pool_proj": 64,
    },
    "small": {
        "batch_size": 2,
        "height": 12,
        "width": 16,
        "in_channels": 48,
        "out_1x1": 24,
        "reduce_3x3": 12,
        "out_3x3": 26,
        "reduce_5x5": 4,
        "out_5x5": 6,
        "pool_proj": 8,
    },
}


class Model(nn.Module):
    """No activation stands between the two convolutions of a branch."""

    def __init__(self, in_channels, out_1x1, reduce_3x3, out_3x3, reduce_5x5, out_5x5, pool_proj):
        super().__init__()
        self.branch1x1 = nn.Conv2d(in_channels, out_1x1, kernel_size=1)
        self.branch3x3 = nn.Sequential(
            nn.Conv2d(in_channels, reduce_3x3, kernel_size=1),
            nn.Conv2d(reduce_3x3, out_3x3, kernel_size=3, padding=1),
        )
        self.branch5x5 = nn.Sequential(
            nn.Conv2d(in_channels, reduce_5x5, kernel_size=1),
            nn.Conv2d(reduce_5x5, out_5x5, kernel_size=5, padding=2),
        )
        self.branch_pool = nn.Sequential(
            nn.MaxPool2d(kernel_size=3, stride=1, padding=1),
            nn.Conv2d(in_channels, pool_proj, kernel_size=1),
        )

    def forward(self, x):
        branches = [
            self.branch1x1(x),
            self.branch3x3(x),
            self.branch5x5(x),
            self.branch_pool(x),
        ]
        return torch.cat(branches, dim=1)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_1x1, reduce_3x3, out_3x3, reduce_5x5, out_5x5, pool_proj]
