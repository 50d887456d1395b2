"""3-D tensor times a matrix over its last dimension: C[b] = A[b] @ B."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 16, "M": 1024, "K": 2048, "N": 768},
    "small": {"batch_size": 3, "M": 68, "K": 132, "N": 92},
}

SLICE = {"A": 0, "output": 0}


class Model(nn.Module):
    def forward(self, A, B):
        return A @ B


def get_inputs():
    return [torch.rand(batch_size, M, K), torch.rand(K, N)]


def get_init_inputs():
    return []
