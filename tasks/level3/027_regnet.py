"""Three plain convolutional stages, global mean, linear classifier with 10 raw scores."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 8,
        "image_height": 224,
        "image_width": 224,
        "block_widths": [64, 128, 256],
    },
    "small": {
        "batch_size": 2,
        "image_height": 26,
        "image_width": 36,
        "block_widths": [16, 32, 64],
    },
}

# At construction the normalisations scale by 1 and shift by 0: leaving that out would not show.
WEIGHTS = "perturbed"

input_channels = 3
stages = 3
output_classes = 10


def make_stage(in_channels, out_channels):
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(),
        nn.Conv2d(out_channels, out_channels, kernel_size=3, padding=1),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(),
        nn.MaxPool2d(kernel_size=2, stride=2),
    )


class Model(nn.Module):
    def __init__(self, input_channels, stages, block_widths, output_classes):
        super().__init__()
        layers = []
        in_channels = input_channels
        for i in range(stages):
            layers.append(make_stage(in_channels, block_widths[i]))
            in_channels = block_widths[i]
        self.feature_extractor = nn.Sequential(*layers)
        self.fc = nn.Linear(in_channels, output_classes)

    def forward(self, x):
        x = self.feature_extractor(x)
        x = x.mean(dim=(2, 3))
        return self.fc(x)


def get_inputs():
    return [torch.rand(batch_size, input_channels, image_height, image_width)]


def get_init_inputs():
    return [input_channels, stages, block_widths, output_classes]
