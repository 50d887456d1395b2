"""Mamba-2 state space model by blocks, with learned A, B and C; returns the sequence."""

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 2048,
        "seq_length": 128,
        "n_heads": 8,
        "d_head": 64,
        "d_state": 16,
        "block_len": 64,
    },
    "small": {
        "batch_size": 2,
        "seq_length": 48,
        "n_heads": 3,
        "d_head": 16,
        "d_state": 8,
        "block_len": 16,
    },
}

# The batch is a dimension of the parameters too.
SLICE = None


def segment_sum(a):
    """(..., T) -> (..., T, T): at [i, j] the sum of a over j+1..i, -inf where j > i."""
    length = a.shape[-1]
    total = torch.cumsum(a, dim=-1)
    sums = total[..., :, None] - total[..., None, :]
    causal = torch.tril(torch.ones(length, length, dtype=torch.bool, device=a.device))
    return sums.masked_fill(~causal, float("-inf"))


class Model(nn.Module):
    """The linear recurrence of a state space model, block by block.

    Letters of the contractions: b batch, c block, l and s positions in a block, h head, p channel
    of a head, n channel of the state, z block that a state enters.
    """

    def __init__(self, batch_size, seq_length, n_heads, d_head, d_state, block_len=64):
        super().__init__()
        self.block_len = block_len
        self.A = nn.Parameter(torch.randn(batch_size, seq_length, n_heads))
        self.B = nn.Parameter(torch.randn(batch_size, seq_length, n_heads, d_state))
        self.C = nn.Parameter(torch.randn(batch_size, seq_length, n_heads, d_state))

    def blocks(self, x):
        """(batch, sequence, ...) -> (batch, block, position, ...)."""
        return x.view(x.shape[0], -1, self.block_len, *x.shape[2:])

    def forward(self, X, initial_states=None):
        X_blocks, A_blocks, B_blocks, C_blocks = map(self.blocks, (X, self.A, self.B, self.C))
        A_blocks = A_blocks.permute(0, 3, 1, 2)
        A_total = torch.cumsum(A_blocks, dim=-1)

        # Within a block.
        L = torch.exp(segment_sum(A_blocks))
        Y_within = torch.einsum("bclhn,bcshn,bhcls,bcshp->bclhp", C_blocks, B_blocks, L, X_blocks)

        # The state that each block would leave behind by itself.
        decay = torch.exp(A_total[..., -1:] - A_total)
        states = torch.einsum("bclhn,bhcl,bclhp->bchpn", B_blocks, decay, X_blocks)

        # The state that enters each block, and the one after the last.
        if initial_states is None:
            initial_states = torch.zeros_like(states[:, :1])
        states = torch.cat([initial_states, states], dim=1)
        decay = torch.exp(segment_sum(F.pad(A_total[..., -1], (1, 0))))
        states = torch.einsum("bhzc,bchpn->bzhpn", decay, states)

        # Between blocks.
        decay = torch.exp(A_total)
        Y_between = torch.einsum("bclhn,bchpn,bhcl->bclhp", C_blocks, states[:, :-1], decay)
        return (Y_within + Y_between).reshape(X.shape)


def get_inputs():
    return [torch.rand(batch_size, seq_length, n_heads, d_head)]


def get_init_inputs():
    return [batch_size, seq_length, n_heads, d_head, d_state, block_len]
