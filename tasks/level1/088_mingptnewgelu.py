"""GELU in its tanh form, as in GPT: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), elementwise."""

import math

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 8192, "dim": 8192},
    "small": {"batch_size": 61, "dim": 259},
}


class Model(nn.Module):
    def forward(self, x):
        inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
        return 0.5 * x * (1.0 + torch.tanh(inner))


def get_inputs():
    return [torch.rand(batch_size, dim)]


def get_init_inputs():
    return []
