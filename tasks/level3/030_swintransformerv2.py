"""Swin Transformer V2 (tiny): windowed cosine attention with a learned position bias; 1000 scores."""

import math

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

# At construction the normalisations scale by 1 and shift by 0, and q_bias and v_bias are 0: leaving
# them out would not show.
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


def relative_coords_table(window_size, pretrained_window_size):
    """Log-spaced offsets (row, column) between two positions of a window, (1, 2w-1, 2w-1, 2)."""
    offsets = torch.arange(-(window_size - 1), window_size, dtype=torch.float32)
    table = torch.stack(torch.meshgrid(offsets, offsets, indexing="ij"), dim=-1).unsqueeze(0)
    table = 8 * table / ((pretrained_window_size or window_size) - 1)
    return torch.sign(table) * torch.log2(table.abs() + 1.0) / math.log2(8)


def relative_position_index(window_size):
    """Row of the flattened coordinate table for each (query, key), (w*w, w*w)."""
    axis = torch.arange(window_size)
    rows, columns = (grid.flatten() for grid in torch.meshgrid(axis, axis, indexing="ij"))
    dy = rows[:, None] - rows[None, :] + window_size - 1
    dx = columns[:, None] - columns[None, :] + window_size - 1
    return dy * (2 * window_size - 1) + dx


def shifted_window_mask(resolution, window_size, shift_size):
    """-100 between positions that only the cyclic shift made neighbours, (windows, w*w, w*w)."""
    axis = torch.arange(resolution)
    part = (axis >= resolution - window_size).int() + (axis >= resolution - shift_size).int()
    region = (3 * part[:, None] + part[None, :]).view(1, resolution, resolution, 1)
    region = window_partition(region, window_size).view(-1, window_size * window_size)
    apart = region[:, :, None] != region[:, None, :]
    return torch.zeros(apart.shape).masked_fill(apart, -100.0)


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


class WindowAttention(nn.Module):
    def __init__(
        self, dim, window_size, num_heads, qkv_bias, attn_drop, proj_drop, pretrained_window_size
    ):
        super().__init__()
        self.num_heads = num_heads
        self.logit_scale = nn.Parameter(torch.full((num_heads, 1, 1), math.log(10.0)))
        self.q_bias = nn.Parameter(torch.zeros(dim)) if qkv_bias else None
        self.v_bias = nn.Parameter(torch.zeros(dim)) if qkv_bias else None
        self.register_buffer(
            "relative_coords_table", relative_coords_table(window_size, pretrained_window_size)
        )
        self.register_buffer("relative_position_index", relative_position_index(window_size))
        self.cpb_mlp = nn.Sequential(
            nn.Linear(2, 512),
            nn.ReLU(inplace=True),
            nn.Linear(512, num_heads, bias=False),
        )
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.attn_drop = nn.Dropout(attn_drop)
        self.proj = nn.Linear(dim, dim)
        self.proj_drop = nn.Dropout(proj_drop)

    def forward(self, x, mask=None):
        windows, tokens, channels = x.shape
        bias = None
        if self.q_bias is not None:
            bias = torch.cat([self.q_bias, torch.zeros_like(self.v_bias), self.v_bias])
        qkv = F.linear(x, self.qkv.weight, bias)
        qkv = qkv.view(windows, tokens, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)

        attn = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        attn = attn * self.logit_scale.clamp(max=math.log(100.0)).exp()
        attn = attn + self.position_bias()
        if mask is not None:
            images = windows // mask.shape[0]
            attn = attn.view(images, mask.shape[0], self.num_heads, tokens, tokens)
            attn = (attn + mask[None, :, None]).view(windows, self.num_heads, tokens, tokens)
        attn = self.attn_drop(attn.softmax(dim=-1))

        x = (attn @ v).transpose(1, 2).reshape(windows, tokens, channels)
        return self.proj_drop(self.proj(x))

    def position_bias(self):
        """(heads, tokens, tokens), in (0, 16)."""
        index = self.relative_position_index
        table = self.cpb_mlp(self.relative_coords_table).view(-1, self.num_heads)
        bias = table[index.view(-1)].view(*index.shape, self.num_heads)
        return 16 * torch.sigmoid(bias.permute(2, 0, 1).contiguous())


class SwinBlock(nn.Module):
    """Normalises after attention and after the MLP, before each is added to its input."""

    def __init__(
        self,
        dim,
        resolution,
        num_heads,
        window_size,
        shift_size,
        mlp_ratio,
        qkv_bias,
        drop,
        attn_drop,
        norm_layer,
        pretrained_window_size,
    ):
        super().__init__()
        self.resolution = resolution
        self.window_size = window_size
        self.shift_size = shift_size
        if resolution <= window_size:
            self.window_size = resolution
            self.shift_size = 0
        self.norm1 = norm_layer(dim)
        self.attn = WindowAttention(
            dim, self.window_size, num_heads, qkv_bias, attn_drop, drop, pretrained_window_size
        )
        self.norm2 = norm_layer(dim)
        self.mlp = Mlp(dim, int(dim * mlp_ratio), drop)
        mask = None
        if self.shift_size > 0:
            mask = shifted_window_mask(resolution, self.window_size, self.shift_size)
        self.register_buffer("attn_mask", mask)

    def forward(self, x):
        x = x + self.norm1(self.attend(x))
        return x + self.norm2(self.mlp(x))

    def attend(self, x):
        batch, tokens, channels = x.shape
        x = x.view(batch, self.resolution, self.resolution, channels)
        if self.shift_size > 0:
            x = torch.roll(x, shifts=(-self.shift_size, -self.shift_size), dims=(1, 2))
        windows = window_partition(x, self.window_size)
        windows = self.attn(windows.view(-1, self.window_size**2, channels), self.attn_mask)
        windows = windows.view(-1, self.window_size, self.window_size, channels)
        x = window_reverse(windows, self.window_size, self.resolution, self.resolution)
        if self.shift_size > 0:
            x = torch.roll(x, shifts=(self.shift_size, self.shift_size), dims=(1, 2))
        return x.view(batch, tokens, channels)


class PatchMerging(nn.Module):
    """Halves the resolution: the four tokens of a 2x2 square become one of twice the width."""

    def __init__(self, dim, resolution, norm_layer):
        super().__init__()
        self.resolution = resolution
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(2 * dim)

    def forward(self, x):
        batch, _, channels = x.shape
        x = x.view(batch, self.resolution, self.resolution, channels)
        parities = [x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]]
        x = torch.cat(parities, dim=-1).view(batch, -1, 4 * channels)
        return self.norm(self.reduction(x))


class SwinLayer(nn.Module):
    def __init__(self, dim, resolution, depth, window_size, norm_layer, is_last, **block_args):
        super().__init__()
        self.blocks = nn.ModuleList(
            SwinBlock(
                dim,
                resolution,
                window_size=window_size,
                shift_size=0 if i % 2 == 0 else window_size // 2,
                norm_layer=norm_layer,
                **block_args,
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
        qkv_bias=True,
        drop_rate=0.0,
        attn_drop_rate=0.0,
        drop_path_rate=0.1,
        norm_layer=nn.LayerNorm,
        patch_norm=True,
        use_checkpoint=False,
        pretrained_window_sizes=(0, 0, 0, 0),
    ):
        super().__init__()
        num_layers = len(depths)
        num_features = embed_dim * 2 ** (num_layers - 1)
        self.patch_embed = PatchEmbed(
            patch_size, in_chans, embed_dim, norm_layer if patch_norm else None
        )
        self.pos_drop = nn.Dropout(drop_rate)
        self.layers = nn.ModuleList(
            SwinLayer(
                embed_dim * 2**i,
                img_size // patch_size // 2**i,
                depths[i],
                window_size,
                norm_layer,
                is_last=i == num_layers - 1,
                num_heads=num_heads[i],
                mlp_ratio=mlp_ratio,
                qkv_bias=qkv_bias,
                drop=drop_rate,
                attn_drop=attn_drop_rate,
                pretrained_window_size=pretrained_window_sizes[i],
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
