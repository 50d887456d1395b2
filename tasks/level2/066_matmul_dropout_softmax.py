"""Linear, dropout, softmax."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 128, "in_features": 16384, "out_features": 16384},
    "small": {"batch_size": 48, "in_features": 400, "out_features": 512},
}

dropout_p = 0.2

# With the constructed weights the output is nearly the same for all inputs.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """softmax(dropout(linear(x)), dim=1); in train mode the output is random."""

    def __init__(self, in_features, out_features, dropout_p):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, x):
        x = self.dropout(self.matmul(x))
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, dropout_p]
