"""Square matrix multiplication: C = A @ B."""

import torch
from torch import nn

PRESETS = {
    "full": {"N": 4096},
    "small": {"N": 197},
}

SLICE = {"A": 0, "output": 0}


class Model(nn.Module):
    def forward(self, A, B):
        return A @ B


def get_inputs():
    return [torch.rand(N, N), torch.rand(N, N)]


def get_init_inputs():
    return []
