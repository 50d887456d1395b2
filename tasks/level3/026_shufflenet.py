"""ShuffleNet with all units at stride 1 on 3x224x224 images; raw scores of 1000 classes."""

import torch
import torch.nn.functional as F
from torch import nn

# init_inputs: num_classes, then groups, stages_repeats and stages_out_channels where they are not
# the default.
PRESETS = {
    "full": {"batch_size": 10, "image_size": 224, "init_inputs": [1000]},
    "small": {
        "batch_size": 2,
        "image_size": 32,
        "init_inputs": [100, 3, [2, 3, 2], [24, 60, 120, 240]],
    },
}

# At construction the normalisations scale by 1 and shift by 0: leaving that out would not show.
WEIGHTS = "perturbed"


def shuffle_channels(x, groups):
    """Deals the channels of each group out to all groups: (g, c) becomes (c, g)."""
    batch_size, channels, height, width = x.shape
    x = x.view(batch_size, groups, channels // groups, height, width)
    return x.transpose(1, 2).contiguous().view(batch_size, channels, height, width)


class ShuffleNetUnit(nn.Module):
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


def make_stage(in_channels, out_channels, repeats, groups):
    units = [ShuffleNetUnit(in_channels, out_channels, groups)]
    for _ in range(repeats - 1):
        units.append(ShuffleNetUnit(out_channels, out_channels, groups))
    return nn.Sequential(*units)


class Model(nn.Module):
    def __init__(
        self,
        num_classes=1000,
        groups=3,
        stages_repeats=(3, 7, 3),
        stages_out_channels=(24, 240, 480, 960),
    ):
        super().__init__()
        stem, width2, width3, width4 = stages_out_channels
        self.conv1 = nn.Conv2d(3, stem, kernel_size=3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(stem)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.stage2 = make_stage(stem, width2, stages_repeats[0], groups)
        self.stage3 = make_stage(width2, width3, stages_repeats[1], groups)
        self.stage4 = make_stage(width3, width4, stages_repeats[2], groups)
        self.conv5 = nn.Conv2d(width4, 1024, kernel_size=1, bias=False)
        self.bn5 = nn.BatchNorm2d(1024)
        self.fc = nn.Linear(1024, num_classes)

    def forward(self, x):
        x = self.maxpool(F.relu(self.bn1(self.conv1(x))))
        x = self.stage2(x)
        x = self.stage3(x)
        x = self.stage4(x)
        x = F.relu(self.bn5(self.conv5(x)))
        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return self.fc(x)


def get_inputs():
    return [torch.rand(batch_size, 3, image_size, image_size)]


def get_init_inputs():
    return init_inputs
