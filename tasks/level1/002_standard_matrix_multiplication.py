"""Matrix multiplication: C = A @ B."""

import torch
from torch import nn

PRESETS = {
    "full": {"M": 2048, "K": 8192, "N": 4096},
    "small": {"M": 124, "K": 408, "N": 205},
}

SLICE = {"A": 0, "output": 0}


class Model(nn.Module):
    def forward(self, A, B):
        return A @ B


def get_inputs():
    return [torch.rand(M, K), torch.rand(K, N)]


def get_init_inputs():
    return []
