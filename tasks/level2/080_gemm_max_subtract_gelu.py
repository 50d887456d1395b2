"""Linear, maximum over features, subtraction of the mean, GELU."""

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = {
    "full": {"batch_size": 1024, "in_features": 8192, "out_features": 8192},
    "small": {"batch_size": 48, "in_features": 400, "out_features": 512},
}

max_dim = 1

UNSCORABLE = (
    "The maximum over features m has shape (N, 1), so its mean over dim 1 is m itself, "
    "m - m = 0 for every finite m, and gelu(0) = 0: the output is zero for all inputs and weights."
)


class Model(nn.Module):
    """gelu(m - mean(m, dim=1)), where m = max(linear(x), over features): (N, 1)."""

    def __init__(self, in_features, out_features, max_dim):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.max_dim = max_dim

    def forward(self, x):
        x = torch.max(self.gemm(x), dim=self.max_dim, keepdim=True).values
        x = x - x.mean(dim=1, keepdim=True)
        return F.gelu(x)


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, max_dim]
