"""Linear, subtract, mean, logsumexp, GELU, residual add."""

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = {
    "full": {"batch_size": 2048, "in_features": 8192, "out_features": 8192},
    "small": {"batch_size": 48, "in_features": 400, "out_features": 512},
}

# With the constructed weights the output is nearly the input itself.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """x + gelu(mean(linear(x) - subtract, over features)): (N, in_features).

    The logsumexp reduces an axis of length one, so it changes nothing.
    """

    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features, bias=bias)
        self.subtract = nn.Parameter(torch.randn(out_features))

    def forward(self, x):
        residual = x.clone().detach()
        x = self.gemm(x) - self.subtract
        x = torch.mean(x, dim=1, keepdim=True)
        x = torch.logsumexp(x, dim=1, keepdim=True)
        return F.gelu(x) + residual


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features]
