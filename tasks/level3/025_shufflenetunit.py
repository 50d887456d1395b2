"""ShuffleNet unit with three groups, 240 -> 480 channels at stride 1, projection shortcut."""

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 10,
        "height": 224,
        "width": 224,
        "in_channels": 240,
        "out_channels": 480,
    },
    "small": {
        "batch_size": 2,
        "height": 14,
        "width": 18,
        "in_channels": 30,
        "out_channels": 60,
    },
}

# At construction the normalisations scale by 1 and shift by 0: leaving that out would not show.
WEIGHTS = "perturbed"

groups = 3


def shuffle_channels(x, groups):
    """Deals the channels of each group out to all groups: (g, c) becomes (c, g)."""
    batch_size, channels, height, width = x.shape
    x = x.view(batch_size, groups, channels // groups, height, width)
    return x.transpose(1, 2).contiguous().view(batch_size, channels, height, width)


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, groups=3):
        super().__init__()
        mid_channels = out_channels // 4
        self.groups = groups
        self.conv1 = nn.Conv2d(in_channels, mid_channels, kernel_size=1, groups=groups, bias=False)
        self.bn1 = nn.BatchNorm2d(mid_channels)
        self.conv2 = nn.Conv2d(
            mid_channels,
            mid_channels,
            kernel_size=3,
            padding=1,
            groups=mid_channels,
            bias=False,
        )
        self.bn2 = nn.BatchNorm2d(mid_channels)
        self.conv3 = nn.Conv2d(mid_channels, out_channels, kernel_size=1, groups=groups, bias=False)
        self.bn3 = nn.BatchNorm2d(out_channels)
        self.shortcut = nn.Sequential()
        if in_channels != out_channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=False),
                nn.BatchNorm2d(out_channels),
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out = shuffle_channels(out, self.groups)
        out = F.relu(self.bn3(self.conv3(out)))
        out += self.shortcut(x)
        return out


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, groups]
