"""Multi-head self-attention over the positions of a feature map, with residual and layer norm."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 2,
        "image_height": 128,
        "image_width": 128,
        "embed_dim": 128,
        "num_heads": 4,
    },
    # The attention weights of full, which eager PyTorch writes to memory, take 8.6 GB.
    "medium": {
        "batch_size": 2,
        "image_height": 96,
        "image_width": 96,
        "embed_dim": 128,
        "num_heads": 4,
    },
    "small": {
        "batch_size": 2,
        "image_height": 9,
        "image_width": 13,
        "embed_dim": 64,
        "num_heads": 4,
    },
}

# At construction the biases are 0 and the normalisation scales by 1: leaving them out would not
# show.
WEIGHTS = "perturbed"


class Model(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.attn = nn.MultiheadAttention(embed_dim, num_heads)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x):
        batch, channels, height, width = x.shape
        x = x.view(batch, channels, height * width).permute(2, 0, 1)
        attn_output, _ = self.attn(x, x, x)
        x = self.norm(attn_output + x)
        return x.permute(1, 2, 0).view(batch, channels, height, width)


def get_inputs():
    return [torch.rand(batch_size, embed_dim, image_height, image_width)]


def get_init_inputs():
    return [embed_dim, num_heads]
