"""Matrix times a scalar: C = A * s."""

import torch
from torch import nn

PRESETS = {
    "full": {"M": 65536, "N": 16384},
    "small": {"M": 259, "N": 517},
}

s = 3.14


class Model(nn.Module):
    def forward(self, A, s):
        return A * s


def get_inputs():
    return [torch.rand(M, N), s]


def get_init_inputs():
    return []
