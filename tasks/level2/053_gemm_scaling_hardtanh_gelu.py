"""Linear, scale, hardtanh, GELU."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 2048, "in_features": 8192, "out_features": 8192},
    "small": {"batch_size": 48, "in_features": 400, "out_features": 512},
}

scaling_factor = 0.5
hardtanh_min = -2
hardtanh_max = 2

# Wide enough for both ends of the hardtanh to act.
LAWS = {"x": ("normal", 0.0, 8.0)}


class Model(nn.Module):
    """gelu(clamp(linear(x) * scaling_factor, hardtanh_min, hardtanh_max))."""

    def __init__(self, in_features, out_features, scaling_factor, hardtanh_min, hardtanh_max):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.scaling_factor = scaling_factor
        self.hardtanh = nn.Hardtanh(hardtanh_min, hardtanh_max)
        self.gelu = nn.GELU()

    def forward(self, x):
        x = self.hardtanh(self.gemm(x) * self.scaling_factor)
        return self.gelu(x)


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, scaling_factor, hardtanh_min, hardtanh_max]
