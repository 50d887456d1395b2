"""VGG-16 without batch normalisation on 3x224x224 images; raw scores of 1000 classes."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 10, "image_size": 224, "hidden_features": 4096, "num_classes": 1000},
    "small": {"batch_size": 2, "image_size": 32, "hidden_features": 256, "num_classes": 100},
}

# At default construction the scores do not depend on the image.
WEIGHTS = "perturbed"

# (number of convolutions, channels) of the stages; each ends in a max pooling.
STAGES = [(2, 64), (2, 128), (3, 256), (3, 512), (3, 512)]


def make_features():
    layers = []
    in_channels = 3
    for num_convs, channels in STAGES:
        for _ in range(num_convs):
            layers.append(nn.Conv2d(in_channels, channels, kernel_size=3, padding=1))
            layers.append(nn.ReLU(inplace=True))
            in_channels = channels
        layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
    return nn.Sequential(*layers)


class Model(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        pooled_size = image_size // 32
        self.features = make_features()
        self.classifier = nn.Sequential(
            nn.Linear(512 * pooled_size * pooled_size, hidden_features),
            nn.ReLU(inplace=True),
            nn.Dropout(p=0.0),
            nn.Linear(hidden_features, hidden_features),
            nn.ReLU(inplace=True),
            nn.Dropout(p=0.0),
            nn.Linear(hidden_features, num_classes),
        )

    def forward(self, x):
        x = self.features(x)
        x = x.flatten(1)
        return self.classifier(x)


def get_inputs():
    return [torch.rand(batch_size, 3, image_size, image_size)]


def get_init_inputs():
    return [num_classes]
