"""Product of two upper triangular matrices: C = triu(A @ B)."""

import torch
from torch import nn

PRESETS = {
    "full": {"N": 4096},
    "small": {"N": 197},
}

LAWS = {"A": ("upper_triangular",), "B": ("upper_triangular",)}


class Model(nn.Module):
    def forward(self, A, B):
        return torch.triu(A @ B)


def get_inputs():
    return [torch.triu(torch.rand(N, N)), torch.triu(torch.rand(N, N))]


def get_init_inputs():
    return []
