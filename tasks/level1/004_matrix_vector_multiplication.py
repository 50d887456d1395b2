"""Matrix-vector multiplication: C = A @ B, B a single column."""

import torch
from torch import nn

PRESETS = {
    "full": {"M": 2048, "K": 1048576},
    "small": {"M": 37, "K": 8197},
}

# The sum of so many products of mean 1/4 is beyond half precision, where inf would equal inf.
LAWS = {"A": ("normal", 0.0, 1.0), "B": ("normal", 0.0, 1.0)}
SLICE = {"A": 0, "output": 0}


class Model(nn.Module):
    def forward(self, A, B):
        return A @ B


def get_inputs():
    return [torch.rand(M, K), torch.rand(K, 1)]


def get_init_inputs():
    return []
