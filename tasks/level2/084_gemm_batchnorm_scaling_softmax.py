"""Linear, BatchNorm1d, scale, softmax."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 1024, "in_features": 8192, "out_features": 8192},
    "small": {"batch_size": 48, "in_features": 400, "out_features": 512},
}

bn_eps = 1e-05
bn_momentum = 0.1
scale_shape = (1,)

# Norm and scale start as the identity: they would go unchecked.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """softmax(batch_norm(linear(x)) * scale, dim=1)."""

    def __init__(self, in_features, out_features, bn_eps, bn_momentum, scale_shape):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.bn = nn.BatchNorm1d(out_features, eps=bn_eps, momentum=bn_momentum)
        self.scale = nn.Parameter(torch.ones(scale_shape))
        self.softmax = nn.Softmax(dim=1)

    def forward(self, x):
        x = self.bn(self.gemm(x)) * self.scale
        return self.softmax(x)


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, bn_eps, bn_momentum, scale_shape]
