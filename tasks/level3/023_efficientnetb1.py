"""EfficientNet-B1 cut to seven blocks without residuals, 3x240x240 images; scores of 1000 classes."""

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = {
    "full": {"batch_size": 10, "image_size": 240, "num_classes": 1000},
    "small": {"batch_size": 2, "image_size": 40, "num_classes": 100},
}

# At construction the normalisations scale by 1 and shift by 0: leaving that out would not show.
WEIGHTS = "perturbed"


def mbconv(in_channels, out_channels, stride, expand_ratio):
    hidden_channels = in_channels * expand_ratio
    return nn.Sequential(
        nn.Conv2d(in_channels, hidden_channels, kernel_size=1, bias=False),
        nn.BatchNorm2d(hidden_channels),
        nn.ReLU6(inplace=True),
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
    )


class Model(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, kernel_size=3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(32)
        self.mbconv1 = mbconv(32, 16, stride=1, expand_ratio=1)
        self.mbconv2 = mbconv(16, 24, stride=2, expand_ratio=6)
        self.mbconv3 = mbconv(24, 40, stride=2, expand_ratio=6)
        self.mbconv4 = mbconv(40, 80, stride=2, expand_ratio=6)
        self.mbconv5 = mbconv(80, 112, stride=1, expand_ratio=6)
        self.mbconv6 = mbconv(112, 192, stride=2, expand_ratio=6)
        self.mbconv7 = mbconv(192, 320, stride=1, expand_ratio=6)
        self.conv2 = nn.Conv2d(320, 1280, kernel_size=1, bias=False)
        self.bn2 = nn.BatchNorm2d(1280)
        self.fc = nn.Linear(1280, num_classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.mbconv1(x)
        x = self.mbconv2(x)
        x = self.mbconv3(x)
        x = self.mbconv4(x)
        x = self.mbconv5(x)
        x = self.mbconv6(x)
        x = self.mbconv7(x)
        x = F.relu(self.bn2(self.conv2(x)))
        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return self.fc(x)


def get_inputs():
    return [torch.rand(batch_size, 3, image_size, image_size)]


def get_init_inputs():
    return [num_classes]
