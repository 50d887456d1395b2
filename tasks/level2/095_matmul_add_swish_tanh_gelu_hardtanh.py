"""Linear, add, Swish, tanh, GELU, hardtanh."""

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = {
    "full": {"batch_size": 1024, "in_features": 8192, "out_features": 8192},
    "small": {"batch_size": 48, "in_features": 400, "out_features": 512},
}


class Model(nn.Module):
    """clamp(gelu(tanh(swish(linear(x) + add_value))), -1, 1)."""

    def __init__(self, in_features, out_features, add_value_shape):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.add_value = nn.Parameter(torch.randn(add_value_shape))

    def forward(self, x):
        x = self.matmul(x) + self.add_value
        x = torch.sigmoid(x) * x
        x = F.gelu(torch.tanh(x))
        return F.hardtanh(x, min_val=-1.0, max_val=1.0)


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, (out_features,)]
