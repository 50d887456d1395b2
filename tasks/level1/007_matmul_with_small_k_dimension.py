"""Matrix multiplication with a short contraction and a large result: C = A @ B."""

import torch
from torch import nn

PRESETS = {
    "full": {"M": 32768, "K": 64, "N": 32768},
    "small": {"M": 519, "K": 33, "N": 533},
}

SLICE = {"A": 0, "output": 0}


class Model(nn.Module):
    def forward(self, A, B):
        return A @ B


def get_inputs():
    return [torch.rand(M, K), torch.rand(K, N)]


def get_init_inputs():
    return []
