"""Leaky ReLU: x for positive x, negative_slope * x otherwise, elementwise."""

import torch
from torch import nn
from torch.nn import functional as F

PRESETS = {
    "full": {"batch_size": 4096, "dim": 393216},
    "medium": {"batch_size": 2048, "dim": 393216},
    "small": {"batch_size": 16, "dim": 771},
}


class Model(nn.Module):
    def __init__(self, negative_slope=0.01):
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x):
        return F.leaky_relu(x, self.negative_slope)


def get_inputs():
    return [torch.rand(batch_size, dim)]


def get_init_inputs():
    return []
