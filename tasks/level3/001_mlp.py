"""Multilayer perceptron: 16384 -> 16384 -> 16384 -> 8192, ReLU after every layer but the last."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 128,
        "input_size": 16384,
        "layer_sizes": [16384, 16384],
        "output_size": 8192,
    },
    "small": {
        "batch_size": 16,
        "input_size": 256,
        "layer_sizes": [192, 160],
        "output_size": 128,
    },
}


class Model(nn.Module):
    def __init__(self, input_size, layer_sizes, output_size):
        super().__init__()
        layers = []
        width = input_size
        for layer_size in layer_sizes:
            layers += [nn.Linear(width, layer_size), nn.ReLU()]
            width = layer_size
        layers.append(nn.Linear(width, output_size))
        self.network = nn.Sequential(*layers)

    def forward(self, x):
        return self.network(x)


def get_inputs():
    return [torch.rand(batch_size, input_size)]


def get_init_inputs():
    return [input_size, layer_sizes, output_size]
