"""Linear, Swish, divide, clamp, tanh, clamp."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 1024, "in_features": 8192, "out_features": 8192},
    "small": {"batch_size": 48, "in_features": 400, "out_features": 512},
}

# Wide enough for the clamp to act.
LAWS = {"x": ("normal", 0.0, 4.0)}


class Model(nn.Module):
    """clamp(tanh(clamp(swish(linear(x)) / 2, -1, 1)), -1, 1)."""

    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features, bias=bias)

    def forward(self, x):
        x = self.gemm(x)
        x = x * torch.sigmoid(x)
        x = torch.clamp(x / 2.0, min=-1.0, max=1.0)
        return torch.clamp(torch.tanh(x), min=-1.0, max=1.0)


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features]
