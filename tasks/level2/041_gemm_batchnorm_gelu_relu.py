"""Linear, BatchNorm1d, GELU, ReLU."""

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = {
    "full": {"batch_size": 16384, "in_features": 4096, "out_features": 4096},
    "small": {"batch_size": 48, "in_features": 400, "out_features": 512},
}

# The norm starts with weight 1 and bias 0: its affine part would go unchecked.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """relu(gelu(batch_norm(linear(x))))."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.batch_norm = nn.BatchNorm1d(out_features)

    def forward(self, x):
        x = self.batch_norm(self.gemm(x))
        return torch.relu(F.gelu(x))


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features]
