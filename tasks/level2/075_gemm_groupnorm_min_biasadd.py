"""Linear, GroupNorm, minimum over features, bias."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 1024, "in_features": 8192, "out_features": 8192, "num_groups": 512},
    "small": {"batch_size": 48, "in_features": 400, "out_features": 512, "num_groups": 32},
}

# The norm starts with weight 1 and bias 0: its affine part would go unchecked.
WEIGHTS = "perturbed"
# Broadcasting moves the batch to dimension 2 of the output.
SLICE = {"x": 0, "output": 2}


class Model(nn.Module):
    """min(group_norm(linear(x)), over features) + bias: (1, out_features, N, 1).

    The (N, 1) minima broadcast against the bias of shape (1, out_features, 1, 1).
    """

    def __init__(self, in_features, out_features, num_groups, bias_shape):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = self.group_norm(self.gemm(x))
        return torch.min(x, dim=1, keepdim=True).values + self.bias


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, num_groups, (1, out_features, 1, 1)]
