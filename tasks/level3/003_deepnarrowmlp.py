"""Deep, narrow multilayer perceptron: 8192 -> 16 hidden layers of 1024 -> 8192, ReLU in between."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 1024,
        "input_size": 8192,
        "hidden_size": 1024,
        "output_size": 8192,
    },
    "small": {
        "batch_size": 16,
        "input_size": 256,
        "hidden_size": 64,
        "output_size": 256,
    },
}

num_hidden_layers = 16

# At default construction the input fades over 16 layers: the output is the same for any input.
WEIGHTS = "perturbed"


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
    return [input_size, [hidden_size] * num_hidden_layers, output_size]
