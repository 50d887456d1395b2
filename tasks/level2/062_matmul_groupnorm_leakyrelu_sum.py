"""Linear, GroupNorm, LeakyReLU, self-add."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 1024, "input_size": 8192, "hidden_size": 8192, "num_groups": 512},
    "small": {"batch_size": 48, "input_size": 400, "hidden_size": 512, "num_groups": 32},
}

# The norm starts with weight 1 and bias 0: its affine part would go unchecked.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """2 * leaky_relu(group_norm(linear(x)))."""

    def __init__(self, input_size, hidden_size, num_groups, eps=1e-05, negative_slope=0.01):
        super().__init__()
        self.fc = nn.Linear(input_size, hidden_size)
        self.gn = nn.GroupNorm(num_groups, hidden_size, eps=eps)
        self.leaky_relu = nn.LeakyReLU(negative_slope)

    def forward(self, x):
        x = self.leaky_relu(self.gn(self.fc(x)))
        return x + x


def get_inputs():
    return [torch.rand(batch_size, input_size)]


def get_init_inputs():
    return [input_size, hidden_size, num_groups]
