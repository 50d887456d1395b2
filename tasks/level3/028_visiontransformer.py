"""Vision transformer with a class token, whose attention runs over the batch; 10 raw scores."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 2,
        "image_size": 224,
        "dim": 512,
        "depth": 6,
        "heads": 8,
        "mlp_dim": 2048,
    },
    "small": {
        "batch_size": 2,
        "image_size": 64,
        "dim": 64,
        "depth": 2,
        "heads": 4,
        "mlp_dim": 128,
    },
}

UNSCORABLE = (
    "The encoder is not batch-first, so attention mixes equal positions of different images and "
    "never two positions of one; the scores are read from position 0, which holds the class token "
    "plus its position embedding for every image. The output depends on the weights alone, so "
    "whatever a candidate does with the image cannot be told from doing nothing."
)

# Attention runs over the batch.
SLICE = None

patch_size = 16
num_classes = 10
channels = 3
dropout = 0.0
emb_dropout = 0.0


class Model(nn.Module):
    def __init__(
        self,
        image_size,
        patch_size,
        num_classes,
        dim,
        depth,
        heads,
        mlp_dim,
        channels=3,
        dropout=0.1,
        emb_dropout=0.1,
    ):
        super().__init__()
        num_patches = (image_size // patch_size) ** 2
        self.patch_size = patch_size
        self.patch_dim = channels * patch_size**2
        self.pos_embedding = nn.Parameter(torch.randn(1, num_patches + 1, dim))
        self.patch_to_embedding = nn.Linear(self.patch_dim, dim)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self.dropout = nn.Dropout(emb_dropout)
        self.transformer = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(dim, heads, dim_feedforward=mlp_dim, dropout=dropout),
            num_layers=depth,
            enable_nested_tensor=False,
        )
        self.mlp_head = nn.Sequential(
            nn.Linear(dim, mlp_dim),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(mlp_dim, num_classes),
        )

    def forward(self, img):
        p = self.patch_size
        patches = img.unfold(2, p, p).unfold(3, p, p)
        # The channels stay outermost: a token is patch_dim consecutive values of one channel.
        patches = patches.reshape(img.shape[0], -1, self.patch_dim)
        tokens = self.patch_to_embedding(patches)
        cls_tokens = self.cls_token.expand(img.shape[0], -1, -1)
        x = torch.cat([cls_tokens, tokens], dim=1)
        x += self.pos_embedding
        x = self.dropout(x)
        x = self.transformer(x)
        return self.mlp_head(x[:, 0])


def get_inputs():
    return [torch.rand(batch_size, channels, image_size, image_size)]


def get_init_inputs():
    return [
        image_size,
        patch_size,
        num_classes,
        dim,
        depth,
        heads,
        mlp_dim,
        channels,
        dropout,
        emb_dropout,
    ]
