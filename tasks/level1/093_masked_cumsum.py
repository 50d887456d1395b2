"""Cumulative sum along a dimension of the values that a mask selects."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 32768, "length": 32768},
    "medium": {"batch_size": 16384, "length": 32768},
    "small": {"batch_size": 33, "length": 517},
}

LAWS = {"mask": ("bernoulli", 0.5)}
SLICE = 0

dim = 1


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x, mask):
        return torch.cumsum(x * mask, dim=self.dim)


def get_inputs():
    return [torch.rand(batch_size, length), torch.rand(batch_size, length) < 0.5]


def get_init_inputs():
    return [dim]
