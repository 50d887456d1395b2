"""4-D tensor times a matrix over its last dimension: C[b, i, j, :] = A[b, i, j, :] @ B."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 8, "I": 256, "J": 512, "L": 256, "K": 768},
    "small": {"batch_size": 2, "I": 13, "J": 21, "L": 68, "K": 92},
}

SLICE = {"A": 0, "output": 0}


class Model(nn.Module):
    def forward(self, A, B):
        return torch.einsum("bijl,lk->bijk", A, B)


def get_inputs():
    return [torch.rand(batch_size, I, J, L), torch.rand(L, K)]


def get_init_inputs():
    return []
