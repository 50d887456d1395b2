"""2-D convolution with bias, the first layer of AlexNet: 3 to 96 channels, kernel 11, stride 4."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 256, "height": 224, "width": 224},
    "small": {"batch_size": 2, "height": 67, "width": 67},
}

num_classes = 1000  # accepted, not used


class Model(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 96, kernel_size=11, stride=4, padding=2)

    def forward(self, x):
        return self.conv1(x)


def get_inputs():
    return [torch.rand(batch_size, 3, height, width)]


def get_init_inputs():
    return [num_classes]
