"""Linear, average pool over features, GELU, scale, maximum."""

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = {
    "full": {"batch_size": 1024, "in_features": 8192, "out_features": 8192},
    "small": {"batch_size": 48, "in_features": 400, "out_features": 512},
}

pool_kernel_size = 16
scale_factor = 2.0


class Model(nn.Module):
    """max(gelu(avg_pool(linear(x))) * scale_factor, over features): (N,)."""

    def __init__(self, in_features, out_features, pool_kernel_size, scale_factor):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.avg_pool = nn.AvgPool1d(pool_kernel_size)
        self.scale_factor = scale_factor

    def forward(self, x):
        x = self.avg_pool(self.matmul(x).unsqueeze(1)).squeeze(1)
        x = F.gelu(x) * self.scale_factor
        return torch.max(x, dim=1).values


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, pool_kernel_size, scale_factor]
