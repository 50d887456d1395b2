"""MobileNetV1 on 3x224x224 images; raw scores of 1000 classes."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 10, "num_classes": 1000, "alpha": 1.0},
    "small": {"batch_size": 2, "num_classes": 100, "alpha": 0.125},
}

# At construction the normalisations scale by 1 and shift by 0: leaving that out would not show.
WEIGHTS = "perturbed"

# The last pooling takes 7x7 windows, which fixes the size of the image.
image_size = 224
input_channels = 3


def conv_bn(in_channels, out_channels, stride):
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, kernel_size=3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(inplace=True),
    )


def depthwise_separable(in_channels, out_channels, stride):
    return nn.Sequential(
        nn.Conv2d(
            in_channels,
            in_channels,
            kernel_size=3,
            stride=stride,
            padding=1,
            groups=in_channels,
            bias=False,
        ),
        nn.BatchNorm2d(in_channels),
        nn.ReLU(inplace=True),
        nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=False),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(inplace=True),
    )


class Model(nn.Module):
    def __init__(self, num_classes=1000, input_channels=3, alpha=1.0):
        super().__init__()
        # (channels, stride) of the separable blocks.
        blocks = [
            (64, 1),
            (128, 2),
            (128, 1),
            (256, 2),
            (256, 1),
            (512, 2),
            (512, 1),
            (512, 1),
            (512, 1),
            (512, 1),
            (512, 1),
            (1024, 2),
            (1024, 1),
        ]
        width = int(32 * alpha)
        layers = [conv_bn(input_channels, width, stride=2)]
        for channels, stride in blocks:
            out_channels = int(channels * alpha)
            layers.append(depthwise_separable(width, out_channels, stride))
            width = out_channels
        layers.append(nn.AvgPool2d(7))
        self.model = nn.Sequential(*layers)
        self.fc = nn.Linear(width, num_classes)

    def forward(self, x):
        x = self.model(x).flatten(1)
        return self.fc(x)


def get_inputs():
    return [torch.rand(batch_size, input_channels, image_size, image_size)]


def get_init_inputs():
    return [num_classes, input_channels, alpha]
