"""Layer normalisation over channels and positions together, weight and bias of their shape."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 16, "features": 64, "dim1": 256, "dim2": 256},
    "small": {"batch_size": 5, "features": 7, "dim1": 29, "dim2": 35},
}

# As constructed, weight and bias are 1 and 0 and could be left out.
WEIGHTS = "perturbed"


class Model(nn.Module):
    def __init__(self, normalized_shape):
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape)

    def forward(self, x):
        return self.ln(x)


def get_inputs():
    return [torch.rand(batch_size, features, dim1, dim2)]


def get_init_inputs():
    return [(features, dim1, dim2)]
