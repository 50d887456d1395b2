"""Batch normalisation of images: per channel over batch and positions, with running statistics."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 64, "num_features": 64, "height": 512, "width": 512},
    "small": {"batch_size": 3, "num_features": 24, "height": 29, "width": 37},
}

# As constructed, weight and bias are 1 and 0 and could be left out.
WEIGHTS = "perturbed"


class Model(nn.Module):
    def __init__(self, num_features):
        super().__init__()
        self.bn = nn.BatchNorm2d(num_features)

    def forward(self, x):
        return self.bn(x)


def get_inputs():
    return [torch.rand(batch_size, num_features, height, width)]


def get_init_inputs():
    return [num_features]
