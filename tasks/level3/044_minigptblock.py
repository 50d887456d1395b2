"""Transformer block as in minGPT: pre-norm causal attention and pre-norm MLP with tanh GELU."""

import math

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 128,
        "max_seqlen": 1024,
        "seq_len": 512,
        "n_embd": 768,
        "n_head": 8,
    },
    "small": {
        "batch_size": 2,
        "max_seqlen": 64,
        "seq_len": 45,
        "n_embd": 96,
        "n_head": 4,
    },
}

# At construction the normalisations scale by 1 and shift by 0: leaving that out would not show.
WEIGHTS = "perturbed"

attn_pdrop = 0.0
resid_pdrop = 0.0


class NewGELU(nn.Module):
    """GELU in its tanh form."""

    def forward(self, x):
        inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
        return 0.5 * x * (1.0 + torch.tanh(inner))


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, attn_pdrop, resid_pdrop, max_seqlen):
        super().__init__()
        self.n_head = n_head
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.attn_dropout = nn.Dropout(attn_pdrop)
        self.resid_dropout = nn.Dropout(resid_pdrop)
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
        attn = self.attn_dropout(attn.softmax(dim=-1))
        y = (attn @ v).transpose(1, 2).contiguous().view(batch, tokens, channels)
        return self.resid_dropout(self.c_proj(y))


class Model(nn.Module):
    def __init__(self, n_embd, n_head, attn_pdrop, resid_pdrop, max_seqlen):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention(n_embd, n_head, attn_pdrop, resid_pdrop, max_seqlen)
        self.ln_2 = nn.LayerNorm(n_embd)
        self.mlp = nn.ModuleDict(
            {
                "c_fc": nn.Linear(n_embd, 4 * n_embd),
                "c_proj": nn.Linear(4 * n_embd, n_embd),
                "act": NewGELU(),
                "dropout": nn.Dropout(resid_pdrop),
            }
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        hidden = self.mlp.act(self.mlp.c_fc(self.ln_2(x)))
        return x + self.mlp.dropout(self.mlp.c_proj(hidden))


def get_inputs():
    return [torch.rand(batch_size, seq_len, n_embd)]


def get_init_inputs():
    return [n_embd, n_head, attn_pdrop, resid_pdrop, max_seqlen]
