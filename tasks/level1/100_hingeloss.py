"""Hinge loss: mean of max(1 - prediction * target, 0), one target of -1 or +1 for each column."""

import torch
from torch import nn

PRESETS = {
    "full": {"size": 32768},
    "small": {"size": 257},
}

LAWS = {"targets": ("sign",)}


class Model(nn.Module):
    def forward(self, predictions, targets):
        return torch.mean(torch.clamp(1 - predictions * targets, min=0))


def get_inputs():
    targets = torch.randint(0, 2, (size,)).float() * 2 - 1
    return [torch.rand(size, size), targets]


def get_init_inputs():
    return []
