"""Linear, scale, residual add, clamp, logsumexp, Mish."""

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = {
    "full": {"batch_size": 1024, "input_size": 8192, "hidden_size": 8192},
    "small": {"batch_size": 48, "input_size": 400, "hidden_size": 512},
}

scale_factor = 2.0
clamp_min = -10.0
clamp_max = 10.0

# With the constructed weights the output is nearly the same for all inputs.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """y * mish(y), where y = logsumexp(clamp(2 * s * linear(x)), dim=1): (N, 1)."""

    def __init__(self, input_size, hidden_size, scale_factor, clamp_min, clamp_max):
        super().__init__()
        self.matmul = nn.Linear(input_size, hidden_size)
        self.scale_factor = scale_factor
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max

    def forward(self, x):
        x = self.matmul(x) * self.scale_factor
        x = x + x
        x = torch.clamp(x, self.clamp_min, self.clamp_max)
        x = torch.logsumexp(x, dim=1, keepdim=True)
        return x * F.mish(x)


def get_inputs():
    return [torch.rand(batch_size, input_size)]


def get_init_inputs():
    return [input_size, hidden_size, scale_factor, clamp_min, clamp_max]
