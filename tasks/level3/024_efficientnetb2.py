"""EfficientNet-B2 cut to five blocks, each of which pools its map to 1x1; scores of 1000 classes."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 2, "image_size": 224, "num_classes": 1000},
    "small": {"batch_size": 8, "image_size": 16, "num_classes": 100},
}

# At construction the normalisations scale by 1 and shift by 0: leaving that out would not show.
# These kernels are wider than construction's: five gates in a row, each nearly constant, would leave
# an output that is the same to 1e-5 for all images.
WEIGHTS = {
    "conv1.weight": ("normal", 0.0, 1.0),
    "mbconv1.7.weight": ("normal", 0.0, 0.2),
    "mbconv1.9.weight": ("normal", 0.0, 1.0),
    "mbconv2.7.weight": ("normal", 0.0, 0.2),
    "mbconv2.9.weight": ("normal", 0.0, 1.0),
    "mbconv3.7.weight": ("normal", 0.0, 0.2),
    "mbconv3.9.weight": ("normal", 0.0, 1.0),
    "mbconv4.7.weight": ("normal", 0.0, 0.2),
    "mbconv4.9.weight": ("normal", 0.0, 1.0),
    "mbconv5.7.weight": ("normal", 0.0, 0.2),
    "mbconv5.9.weight": ("normal", 0.0, 1.0),
}
# The maps are pooled to 1x1, so at full size a normalisation in training mode sees two values a
# channel, of which it makes about +1 and -1 whatever their distance: rounding decides the signs.
MODE = "eval"


def mbconv(in_channels, out_channels, stride, expand_ratio):
    """The squeeze-excite gate takes the place of the map that it would scale."""
    hidden_channels = in_channels * expand_ratio
    squeezed_channels = hidden_channels // 4
    return nn.Sequential(
        nn.Conv2d(in_channels, hidden_channels, kernel_size=1, bias=False),
        nn.BatchNorm2d(hidden_channels),
        nn.ReLU(inplace=True),
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
        nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(1),
        nn.Conv2d(hidden_channels, squeezed_channels, kernel_size=1, bias=False),
        nn.ReLU(inplace=True),
        nn.Conv2d(squeezed_channels, hidden_channels, kernel_size=1, bias=False),
        nn.Sigmoid(),
        nn.Conv2d(hidden_channels, out_channels, kernel_size=1, bias=False),
        nn.BatchNorm2d(out_channels),
    )


class Model(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, kernel_size=3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(32)
        self.relu = nn.ReLU(inplace=True)
        self.mbconv1 = mbconv(32, 96, stride=1, expand_ratio=3)
        self.mbconv2 = mbconv(96, 144, stride=2, expand_ratio=6)
        self.mbconv3 = mbconv(144, 192, stride=2, expand_ratio=6)
        self.mbconv4 = mbconv(192, 288, stride=2, expand_ratio=6)
        self.mbconv5 = mbconv(288, 384, stride=1, expand_ratio=6)
        self.conv_final = nn.Conv2d(384, 1408, kernel_size=1, bias=False)
        self.bn_final = nn.BatchNorm2d(1408)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(1408, num_classes)

    def forward(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.mbconv1(x)
        x = self.mbconv2(x)
        x = self.mbconv3(x)
        x = self.mbconv4(x)
        x = self.mbconv5(x)
        x = self.relu(self.bn_final(self.conv_final(x)))
        x = self.avgpool(x).flatten(1)
        return self.fc(x)


def get_inputs():
    return [torch.rand(batch_size, 3, image_size, image_size)]


def get_init_inputs():
    return [num_classes]
