"""DenseNet transition layer: batch norm, ReLU, 1x1 convolution 32 -> 64, average pooling."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 128,
        "height": 256,
        "width": 256,
        "num_input_features": 32,
        "num_output_features": 64,
    },
    "small": {
        "batch_size": 3,
        "height": 22,
        "width": 30,
        "num_input_features": 32,
        "num_output_features": 64,
    },
}

# At construction the normalisations scale by 1 and shift by 0: leaving that out would not show.
WEIGHTS = "perturbed"


class Model(nn.Module):
    def __init__(self, num_input_features, num_output_features):
        super().__init__()
        self.transition = nn.Sequential(
            nn.BatchNorm2d(num_input_features),
            nn.ReLU(inplace=True),
            nn.Conv2d(num_input_features, num_output_features, kernel_size=1, bias=False),
            nn.AvgPool2d(kernel_size=2, stride=2),
        )

    def forward(self, x):
        return self.transition(x)


def get_inputs():
    return [torch.rand(batch_size, num_input_features, height, width)]


def get_init_inputs():
    return [num_input_features, num_output_features]
