"""Linear, max pool over features, sum, scale."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 128, "in_features": 32768, "out_features": 32768},
    "small": {"batch_size": 48, "in_features": 400, "out_features": 512},
}

kernel_size = 2
scale_factor = 0.5


class Model(nn.Module):
    """sum(max_pool(linear(x)), over features) * scale_factor: (N,)."""

    def __init__(self, in_features, out_features, kernel_size, scale_factor):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.max_pool = nn.MaxPool1d(kernel_size)
        self.scale_factor = scale_factor

    def forward(self, x):
        x = self.matmul(x)
        x = self.max_pool(x.unsqueeze(1)).squeeze(1)
        return torch.sum(x, dim=1) * self.scale_factor


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, kernel_size, scale_factor]
