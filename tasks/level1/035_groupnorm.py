"""Group normalisation of images: per sample over the channels of a group and all positions."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 112, "num_features": 64, "height": 512, "width": 512},
    "medium": {"batch_size": 56, "num_features": 64, "height": 512, "width": 512},
    "small": {"batch_size": 3, "num_features": 24, "height": 29, "width": 37},
}

# As constructed, weight and bias are 1 and 0 and could be left out.
WEIGHTS = "perturbed"

num_groups = 8


class Model(nn.Module):
    def __init__(self, num_features, num_groups):
        super().__init__()
        self.gn = nn.GroupNorm(num_groups, num_features)

    def forward(self, x):
        return self.gn(x)


def get_inputs():
    return [torch.rand(batch_size, num_features, height, width)]


def get_init_inputs():
    return [num_features, num_groups]
