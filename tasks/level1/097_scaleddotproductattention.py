"""Scaled dot-product attention: softmax(Q K^T / sqrt(d)) V."""

import torch
from torch import nn
from torch.nn import functional as F

PRESETS = {
    "full": {
        "batch_size": 32,
        "num_heads": 32,
        "sequence_length": 512,
        "embedding_dimension": 1024,
    },
    "small": {"batch_size": 2, "num_heads": 3, "sequence_length": 45, "embedding_dimension": 68},
}

SLICE = 0


class Model(nn.Module):
    def forward(self, Q, K, V):
        return F.scaled_dot_product_attention(Q, K, V)


def get_inputs():
    shape = (batch_size, num_heads, sequence_length, embedding_dimension)
    return [torch.rand(shape), torch.rand(shape), torch.rand(shape)]


def get_init_inputs():
    return []
