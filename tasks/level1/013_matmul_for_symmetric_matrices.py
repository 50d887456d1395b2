"""Product of two symmetric matrices: C = A @ B."""

import torch
from torch import nn

PRESETS = {
    "full": {"N": 4096},
    "small": {"N": 197},
}

LAWS = {"A": ("symmetric",), "B": ("symmetric",)}
SLICE = {"A": 0, "output": 0}


class Model(nn.Module):
    def forward(self, A, B):
        return A @ B


def symmetric(n):
    U = torch.rand(n, n)
    return (U + U.T) / 2


def get_inputs():
    return [symmetric(N), symmetric(N)]


def get_init_inputs():
    return []
