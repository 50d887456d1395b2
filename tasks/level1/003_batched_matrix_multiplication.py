"""Batched matrix multiplication: C[b] = A[b] @ B[b]."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 128, "M": 512, "K": 1024, "N": 2048},
    "small": {"batch_size": 5, "M": 52, "K": 103, "N": 205},
}

SLICE = 0


class Model(nn.Module):
    def forward(self, A, B):
        return torch.bmm(A, B)


def get_inputs():
    return [torch.rand(batch_size, M, K), torch.rand(batch_size, K, N)]


def get_init_inputs():
    return []
