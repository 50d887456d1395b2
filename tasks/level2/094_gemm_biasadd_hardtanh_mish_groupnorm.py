"""Linear, bias, hardtanh, Mish, GroupNorm."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 1024, "in_features": 8192, "out_features": 8192, "num_groups": 256},
    "small": {"batch_size": 48, "in_features": 400, "out_features": 512, "num_groups": 16},
}

# The norm starts with weight 1 and bias 0: its affine part would go unchecked.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """group_norm(mish(clamp(linear(x) + bias, -1, 1)))."""

    def __init__(self, in_features, out_features, bias_shape, num_groups):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.hardtanh = nn.Hardtanh()
        self.mish = nn.Mish()
        self.groupnorm = nn.GroupNorm(num_groups, out_features)

    def forward(self, x):
        x = self.hardtanh(self.gemm(x) + self.bias)
        return self.groupnorm(self.mish(x))


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, (out_features,), num_groups]
