"""Linear, Swish, bias, GroupNorm."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 32768, "in_features": 1024, "out_features": 4096, "num_groups": 64},
    "small": {"batch_size": 48, "in_features": 400, "out_features": 512, "num_groups": 8},
}

# The norm starts with weight 1 and bias 0: its affine part would go unchecked.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """group_norm(swish(linear(x)) + bias)."""

    def __init__(self, in_features, out_features, num_groups, bias_shape):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.group_norm = nn.GroupNorm(num_groups, out_features)

    def forward(self, x):
        x = self.matmul(x)
        x = torch.sigmoid(x) * x
        return self.group_norm(x + self.bias)


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, num_groups, (out_features,)]
