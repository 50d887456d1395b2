"""Tall times wide matrix multiplication: C = A @ B."""

import torch
from torch import nn

PRESETS = {
    "full": {"M": 32768, "K": 32, "N": 32768},
    "small": {"M": 517, "K": 16, "N": 531},
}

SLICE = {"A": 0, "output": 0}


class Model(nn.Module):
    def forward(self, A, B):
        return A @ B


def get_inputs():
    return [torch.rand(M, K), torch.rand(K, N)]


def get_init_inputs():
    return []
