"""Linear, logsumexp, LeakyReLU, LeakyReLU, GELU, GELU."""

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = {
    "full": {"batch_size": 1024, "in_features": 8192, "out_features": 8192},
    "small": {"batch_size": 48, "in_features": 400, "out_features": 512},
}

# With the constructed weights the output is nearly the same for all inputs.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """gelu(gelu(leaky_relu(leaky_relu(logsumexp(linear(x), dim=1))))): (N, 1)."""

    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features, bias=bias)

    def forward(self, x):
        x = torch.logsumexp(self.linear(x), dim=1, keepdim=True)
        x = F.leaky_relu(x, negative_slope=0.01)
        x = F.leaky_relu(x, negative_slope=0.01)
        return F.gelu(F.gelu(x))


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features]
