"""Swin-MLP (tiny): windowed spatial MLPs as grouped 1-D convolutions; raw scores of 1000 classes."""

import torch
import torch.nn.functional as F
from torch import nn

# init_inputs: img_size, patch_size, in_chans, num_classes, embed_dim, depths and num_heads where
# they are not the default.
PRESETS = {
    "full": {"batch_size": 10, "image_size": 224, "init_inputs": []},
    "small": {
        "batch_size": 2,
        "image_size": 56,
        "init_inputs": [56, 4, 3, 10, 24, [2, 2], [3, 6]],
    },
}

# At construction the normalisations scale by 1 and shift by 0: leaving that out would not show.
WEIGHTS = "perturbed"


def window_partition(x, window_size):
    """(batch, height, width, C) -> (batch * windows, window_size, window_size, C)."""
    batch, height, width, channels = x.shape
    x = x.view(
        batch, height // window_size, window_size, width // window_size, window_size, channels
    )
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, window_size, window_size, channels)


def window_reverse(windows, window_size, height, width):
    """The inverse of window_partition."""
    channels = windows.shape[-1]
    x = windows.view(
        -1, height // window_size, width // window_size, window_size, window_size, channels
    )
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, height, width, channels)


class Mlp(nn.Module):
    def __init__(self, dim, hidden_dim, drop):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden_dim)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(hidden_dim, dim)
        self.drop = nn.Dropout(drop)

    def forward(self, x):
        x = self.drop(self.act(self.fc1(x)))
        return self.drop(self.fc2(x))


class SwinMLPBlock(nn.Module):
    def __init__(
        self, dim, resolution, num_heads, window_size, shift_size, mlp_ratio, drop, norm_layer
    ):
        super().__init__()
        self.resolution = resolution
        self.num_heads = num_heads
        self.window_size = window_size
        self.shift_size = shift_size
        if resolution <= window_size:
            self.window_size = resolution
            self.shift_size = 0
        self.norm1 = norm_layer(dim)
        positions = num_heads * self.window_size**2
        self.spatial_mlp = nn.Conv1d(positions, positions, kernel_size=1, groups=num_heads)
        self.norm2 = norm_layer(dim)
        self.mlp = Mlp(dim, int(dim * mlp_ratio), drop)

    def forward(self, x):
        x = x + self.mix_windows(self.norm1(x))
        return x + self.mlp(self.norm2(x))

    def mix_windows(self, x):
        """Mixes the positions of each window, with weights of its own for each head."""
        batch, tokens, channels = x.shape
        x = x.view(batch, self.resolution, self.resolution, channels)
        before, after = self.window_size - self.shift_size, self.shift_size
        if self.shift_size > 0:
            x = F.pad(x, (0, 0, before, after, before, after))
        height, width = x.shape[1:3]

        windows = window_partition(x, self.window_size)
        area = self.window_size**2
        windows = windows.view(-1, area, self.num_heads, channels // self.num_heads)
        windows = windows.transpose(1, 2).reshape(
            -1, self.num_heads * area, channels // self.num_heads
        )
        windows = self.spatial_mlp(windows)
        windows = windows.view(-1, self.num_heads, area, channels // self.num_heads)
        windows = windows.transpose(1, 2).reshape(-1, self.window_size, self.window_size, channels)
        x = window_reverse(windows, self.window_size, height, width)

        if self.shift_size > 0:
            x = x[:, before:-after, before:-after].contiguous()
        return x.view(batch, tokens, channels)


class PatchMerging(nn.Module):
    """Halves the resolution: the four tokens of a 2x2 square become one of twice the width."""

    def __init__(self, dim, resolution, norm_layer):
        super().__init__()
        self.resolution = resolution
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(4 * dim)

    def forward(self, x):
        batch, _, channels = x.shape
        x = x.view(batch, self.resolution, self.resolution, channels)
        parities = [x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]]
        x = torch.cat(parities, dim=-1).view(batch, -1, 4 * channels)
        return self.reduction(self.norm(x))


class SwinMLPLayer(nn.Module):
    def __init__(
        self, dim, resolution, depth, num_heads, window_size, mlp_ratio, drop, norm_layer, is_last
    ):
        super().__init__()
        self.blocks = nn.ModuleList(
            SwinMLPBlock(
                dim,
                resolution,
                num_heads,
                window_size,
                0 if i % 2 == 0 else window_size // 2,
                mlp_ratio,
                drop,
                norm_layer,
            )
            for i in range(depth)
        )
        self.downsample = nn.Identity() if is_last else PatchMerging(dim, resolution, norm_layer)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.downsample(x)


class PatchEmbed(nn.Module):
    def __init__(self, patch_size, in_chans, embed_dim, norm_layer):
        super().__init__()
        self.proj = nn.Conv2d(in_chans, embed_dim, kernel_size=patch_size, stride=patch_size)
        self.norm = nn.Identity() if norm_layer is None else norm_layer(embed_dim)

    def forward(self, x):
        return self.norm(self.proj(x).flatten(2).transpose(1, 2))


class Model(nn.Module):
    """drop_path_rate and use_checkpoint belong to training and are not used."""

    def __init__(
        self,
        img_size=224,
        patch_size=4,
        in_chans=3,
        num_classes=1000,
        embed_dim=96,
        depths=(2, 2, 6, 2),
        num_heads=(3, 6, 12, 24),
        window_size=7,
        mlp_ratio=4.0,
        drop_rate=0.0,
        drop_path_rate=0.1,
        norm_layer=nn.LayerNorm,
        patch_norm=True,
        use_checkpoint=False,
    ):
        super().__init__()
        num_layers = len(depths)
        num_features = embed_dim * 2 ** (num_layers - 1)
        self.patch_embed = PatchEmbed(
            patch_size, in_chans, embed_dim, norm_layer if patch_norm else None
        )
        self.pos_drop = nn.Dropout(drop_rate)
        self.layers = nn.ModuleList(
            SwinMLPLayer(
                embed_dim * 2**i,
                img_size // patch_size // 2**i,
                depths[i],
                num_heads[i],
                window_size,
                mlp_ratio,
                drop_rate,
                norm_layer,
                is_last=i == num_layers - 1,
            )
            for i in range(num_layers)
        )
        self.norm = norm_layer(num_features)
        self.avgpool = nn.AdaptiveAvgPool1d(1)
        self.head = nn.Linear(num_features, num_classes)

    def forward(self, x):
        x = self.pos_drop(self.patch_embed(x))
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        x = self.avgpool(x.transpose(1, 2)).flatten(1)
        return self.head(x)


def get_inputs():
    return [torch.rand(batch_size, 3, image_size, image_size)]


def get_init_inputs():
    return init_inputs
