"""Linear, minimum with a learned scalar, subtract."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 128, "in_features": 16384, "out_features": 16384},
    "small": {"batch_size": 48, "in_features": 400, "out_features": 512},
}

constant = 2.0

# Wide enough for the minimum to act.
LAWS = {"x": ("normal", 0.0, 4.0)}
# The scalar starts at the value that the constructor is given: it must be read from the state.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """min(linear(x), constant) - constant, with a learned scalar."""

    def __init__(self, in_features, out_features, constant):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.constant = nn.Parameter(torch.tensor(constant))

    def forward(self, x):
        x = torch.minimum(self.linear(x), self.constant)
        return x - self.constant


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, constant]
