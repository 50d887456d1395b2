"""Convolutional tokeniser and transformer encoder: one token for the image, one for the class."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 10, "num_classes": 1000, "embed_dim": 128, "num_heads": 4},
    "small": {"batch_size": 3, "num_classes": 100, "embed_dim": 64, "num_heads": 4},
}

# At construction the class token and the biases of attention are 0, and the normalisations scale by
# 1: leaving them out would not show.
WEIGHTS = "perturbed"

image_size = 32
in_channels = 3


class Model(nn.Module):
    def __init__(
        self,
        num_classes,
        embed_dim,
        num_heads,
        num_layers=6,
        mlp_ratio=4.0,
        patch_size=4,
        in_channels=3,
        image_size=32,
    ):
        super().__init__()
        num_patches = (image_size // patch_size) ** 2
        self.conv1 = nn.Conv2d(in_channels, embed_dim, kernel_size=patch_size, stride=patch_size)
        self.linear_proj = nn.Linear(embed_dim * num_patches, embed_dim)
        self.transformer_layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                embed_dim,
                num_heads,
                dim_feedforward=int(embed_dim * mlp_ratio),
                dropout=0.0,
                batch_first=True,
            )
            for _ in range(num_layers)
        )
        self.cls_token = nn.Parameter(torch.zeros(1, 1, embed_dim))
        self.fc_out = nn.Linear(embed_dim, num_classes)

    def forward(self, x):
        x = self.conv1(x).flatten(1)
        x = self.linear_proj(x)
        cls_tokens = self.cls_token.expand(x.shape[0], -1, -1)
        x = torch.cat([cls_tokens, x.unsqueeze(1)], dim=1)
        for layer in self.transformer_layers:
            x = layer(x)
        return self.fc_out(x[:, 0])


def get_inputs():
    return [torch.rand(batch_size, in_channels, image_size, image_size)]


def get_init_inputs():
    return [num_classes, embed_dim, num_heads]
