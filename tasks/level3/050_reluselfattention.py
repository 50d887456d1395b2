"""Causal multi-head self-attention with ReLU in place of softmax and no output projection."""

import math

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 16,
        "max_seqlen": 1024,
        "n_embd": 768,
        "n_head": 12,
    },
    "small": {
        "batch_size": 2,
        "max_seqlen": 45,
        "n_embd": 96,
        "n_head": 4,
    },
}


class Model(nn.Module):
    """c_proj is part of the state and is not applied."""

    def __init__(self, n_embd, n_head, max_seqlen):
        super().__init__()
        self.n_head = n_head
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        # The causal mask; its name is that of the released checkpoints.
        mask = torch.tril(torch.ones(max_seqlen, max_seqlen))
        self.register_buffer("bias", mask.view(1, 1, max_seqlen, max_seqlen))

    def forward(self, x):
        batch, tokens, channels = x.shape
        head_dim = channels // self.n_head
        q, k, v = (
            part.view(batch, tokens, self.n_head, head_dim).transpose(1, 2)
            for part in self.c_attn(x).split(channels, dim=2)
        )
        attn = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(head_dim))
        attn = attn.masked_fill(self.bias[:, :, :tokens, :tokens] == 0, float("-inf"))
        attn = F.relu(attn)
        return (attn @ v).transpose(1, 2).contiguous().view(batch, tokens, channels)


def get_inputs():
    return [torch.rand(batch_size, max_seqlen, n_embd)]


def get_init_inputs():
    return [n_embd, n_head, max_seqlen]
