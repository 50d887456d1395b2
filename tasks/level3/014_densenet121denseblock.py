"""DenseNet dense block: six layers, each reading the channels of all before it."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 10,
        "height": 224,
        "width": 224,
        "num_layers": 6,
        "num_input_features": 32,
        "growth_rate": 32,
    },
    "small": {
        "batch_size": 2,
        "height": 14,
        "width": 18,
        "num_layers": 6,
        "num_input_features": 12,
        "growth_rate": 12,
    },
}

# At construction the normalisations scale by 1 and shift by 0: leaving that out would not show.
WEIGHTS = "perturbed"


def make_layer(in_channels, growth_rate):
    return nn.Sequential(
        nn.BatchNorm2d(in_channels),
        nn.ReLU(inplace=True),
        nn.Conv2d(in_channels, growth_rate, kernel_size=3, padding=1, bias=False),
    )


class Model(nn.Module):
    def __init__(self, num_layers, num_input_features, growth_rate):
        super().__init__()
        self.layers = nn.ModuleList(
            make_layer(num_input_features + i * growth_rate, growth_rate) for i in range(num_layers)
        )

    def forward(self, x):
        features = [x]
        for layer in self.layers:
            features.append(layer(x))
            x = torch.cat(features, dim=1)
        return x


def get_inputs():
    return [torch.rand(batch_size, num_input_features, height, width)]


def get_init_inputs():
    return [num_layers, num_input_features, growth_rate]
