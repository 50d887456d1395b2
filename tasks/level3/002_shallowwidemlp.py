"""Shallow, wide multilayer perceptron: 16384 -> 32768 -> 32768 -> 16384, ReLU in between."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 128,
        "input_size": 16384,
        "hidden_layer_sizes": [32768, 32768],
        "output_size": 16384,
    },
    # The weights of full take 8.6 GB, and a candidate holds them a second time.
    "medium": {
        "batch_size": 128,
        "input_size": 8192,
        "hidden_layer_sizes": [16384, 16384],
        "output_size": 8192,
    },
    "small": {
        "batch_size": 16,
        "input_size": 192,
        "hidden_layer_sizes": [384, 384],
        "output_size": 192,
    },
}


class Model(nn.Module):
    def __init__(self, input_size, hidden_layer_sizes, output_size):
        super().__init__()
        layers = []
        width = input_size
        for layer_size in hidden_layer_sizes:
            layers += [nn.Linear(width, layer_size), nn.ReLU()]
            width = layer_size
        layers.append(nn.Linear(width, output_size))
        self.network = nn.Sequential(*layers)

    def forward(self, x):
        return self.network(x)


def get_inputs():
    return [torch.rand(batch_size, input_size)]


def get_init_inputs():
    return [input_size, hidden_layer_sizes, output_size]
