"""Matrix multiplication with both operands stored transposed: C = A.T @ B.T."""

import torch
from torch import nn

PRESETS = {
    "full": {"M": 2048, "K": 8192, "N": 4096},
    "small": {"M": 124, "K": 408, "N": 205},
}

SLICE = {"A": 1, "output": 0}


class Model(nn.Module):
    def forward(self, A, B):
        return A.T @ B.T


def get_inputs():
    return [torch.rand(K, M), torch.rand(N, K)]


def get_init_inputs():
    return []
