"""MobileNetV2 without residual connections on 3x224x224 images; raw scores of 1000 classes."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 10, "image_size": 224, "num_classes": 1000},
    "small": {"batch_size": 2, "image_size": 40, "num_classes": 100},
}

# At construction the normalisations scale by 1 and shift by 0: leaving that out would not show.
WEIGHTS = "perturbed"


def inverted_residual(in_channels, out_channels, stride, expansion):
    """Expansion, depthwise convolution, projection; no input is added to the result."""
    hidden_channels = in_channels * expansion
    layers = []
    if expansion != 1:
        layers += [
            nn.Conv2d(in_channels, hidden_channels, kernel_size=1, bias=False),
            nn.BatchNorm2d(hidden_channels),
            nn.ReLU6(inplace=True),
        ]
    layers += [
        nn.Conv2d(
            hidden_channels,
            hidden_channels,
            kernel_size=3,
            stride=stride,
            padding=1,
            groups=hidden_channels,
            bias=False,
        ),
        nn.BatchNorm2d(hidden_channels),
        nn.ReLU6(inplace=True),
        nn.Conv2d(hidden_channels, out_channels, kernel_size=1, bias=False),
        nn.BatchNorm2d(out_channels),
    ]
    return nn.Sequential(*layers)


class Model(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        # Expansion, channels, repeats, stride of the first.
        settings = [
            (1, 16, 1, 1),
            (6, 24, 2, 2),
            (6, 32, 3, 2),
            (6, 64, 4, 2),
            (6, 96, 3, 1),
            (6, 160, 3, 2),
            (6, 320, 1, 1),
        ]
        layers = [
            nn.Conv2d(3, 32, kernel_size=3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU6(inplace=True),
        ]
        in_channels = 32
        for expansion, channels, repeats, first_stride in settings:
            for i in range(repeats):
                stride = first_stride if i == 0 else 1
                layers.append(inverted_residual(in_channels, channels, stride, expansion))
                in_channels = channels
        layers += [
            nn.Conv2d(in_channels, 1280, kernel_size=1, bias=False),
            nn.BatchNorm2d(1280),
            nn.ReLU6(inplace=True),
            nn.AdaptiveAvgPool2d(1),
        ]
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(p=0.0), nn.Linear(1280, num_classes))

        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")
            elif isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, mean=0.0, std=0.01)
                nn.init.zeros_(module.bias)

    def forward(self, x):
        x = self.features(x).flatten(1)
        return self.classifier(x)


def get_inputs():
    return [torch.rand(batch_size, 3, image_size, image_size)]


def get_init_inputs():
    return [num_classes]
