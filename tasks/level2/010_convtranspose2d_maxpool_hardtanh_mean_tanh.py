"""ConvTranspose2d, max pool, hardtanh, spatial mean, tanh."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 128, "in_channels": 64, "out_channels": 64, "height": 256, "width": 256},
    "small": {"batch_size": 4, "in_channels": 16, "out_channels": 32, "height": 16, "width": 24},
}

kernel_size = 3
stride = 1
padding = 1
maxpool_kernel_size = 2
maxpool_stride = 2
hardtanh_min = -1
hardtanh_max = 1

# With the constructed weights the output is nearly the same for all inputs.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """tanh(mean(hardtanh(max_pool(conv_transpose(x))), over H and W)): (N, C_out, 1, 1)."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        maxpool_kernel_size,
        maxpool_stride,
        hardtanh_min,
        hardtanh_max,
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride, padding
        )
        self.maxpool = nn.MaxPool2d(maxpool_kernel_size, maxpool_stride)
        self.hardtanh = nn.Hardtanh(hardtanh_min, hardtanh_max)

    def forward(self, x):
        x = self.maxpool(self.conv_transpose(x))
        x = self.hardtanh(x)
        x = torch.mean(x, dim=(2, 3), keepdim=True)
        return torch.tanh(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        maxpool_kernel_size,
        maxpool_stride,
        hardtanh_min,
        hardtanh_max,
    ]
