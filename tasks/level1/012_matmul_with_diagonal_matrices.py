"""Diagonal matrix times a matrix: C = diag(A) @ B, the diagonal given as a vector."""

import torch
from torch import nn

PRESETS = {
    "full": {"M": 4096, "N": 4096},
    "small": {"M": 391, "N": 517},
}

SLICE = 0


class Model(nn.Module):
    def forward(self, A, B):
        return A.unsqueeze(1) * B


def get_inputs():
    return [torch.rand(M), torch.rand(M, N)]


def get_init_inputs():
    return []
