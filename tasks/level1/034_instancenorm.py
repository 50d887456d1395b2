"""Instance normalisation of images: per sample and channel over positions, no parameters."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 112, "num_features": 64, "height": 512, "width": 512},
    "medium": {"batch_size": 56, "num_features": 64, "height": 512, "width": 512},
    "small": {"batch_size": 3, "num_features": 24, "height": 29, "width": 37},
}


class Model(nn.Module):
    def __init__(self, num_features):
        super().__init__()
        self.inorm = nn.InstanceNorm2d(num_features)

    def forward(self, x):
        return self.inorm(x)


def get_inputs():
    return [torch.rand(batch_size, num_features, height, width)]


def get_init_inputs():
    return [num_features]
