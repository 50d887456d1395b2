"""Product of two lower triangular matrices: C = tril(A @ B)."""

import torch
from torch import nn

PRESETS = {
    "full": {"N": 4096},
    "small": {"N": 197},
}

LAWS = {"A": ("lower_triangular",), "B": ("lower_triangular",)}


class Model(nn.Module):
    def forward(self, A, B):
        return torch.tril(A @ B)


def get_inputs():
    return [torch.tril(torch.rand(N, N)), torch.tril(torch.rand(N, N))]


def get_init_inputs():
    return []
