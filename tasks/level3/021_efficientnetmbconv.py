"""EfficientNet MBConv without squeeze-excite: expand 1x1, depthwise 5x5 stride 2, project 1x1."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 10,
        "height": 224,
        "width": 224,
        "in_channels": 112,
        "out_channels": 192,
        "kernel_size": 5,
        "stride": 2,
        "expand_ratio": 6,
    },
    "small": {
        "batch_size": 2,
        "height": 21,
        "width": 27,
        "in_channels": 14,
        "out_channels": 24,
        "kernel_size": 5,
        "stride": 2,
        "expand_ratio": 6,
    },
}

# At construction the normalisations scale by 1 and shift by 0: leaving that out would not show.
WEIGHTS = "perturbed"


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, expand_ratio):
        super().__init__()
        self.use_residual = stride == 1 and in_channels == out_channels
        hidden_channels = in_channels * expand_ratio
        self.expand_conv = nn.Identity()
        if expand_ratio != 1:
            self.expand_conv = nn.Sequential(
                nn.Conv2d(in_channels, hidden_channels, kernel_size=1, bias=False),
                nn.BatchNorm2d(hidden_channels),
                nn.ReLU6(inplace=True),
            )
        self.depthwise_conv = nn.Sequential(
            nn.Conv2d(
                hidden_channels,
                hidden_channels,
                kernel_size,
                stride=stride,
                padding=(kernel_size - 1) // 2,
                groups=hidden_channels,
                bias=False,
            ),
            nn.BatchNorm2d(hidden_channels),
            nn.ReLU6(inplace=True),
        )
        self.project_conv = nn.Sequential(
            nn.Conv2d(hidden_channels, out_channels, kernel_size=1, bias=False),
            nn.BatchNorm2d(out_channels),
        )

    def forward(self, x):
        out = self.project_conv(self.depthwise_conv(self.expand_conv(x)))
        if self.use_residual:
            out += x
        return out


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, expand_ratio]
