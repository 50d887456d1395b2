"""ConvTranspose3d, logsumexp over channels, sigmoid gate, subtract, clamp."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 128,
        "in_channels": 3,
        "out_channels": 16,
        "depth": 16,
        "height": 32,
        "width": 32,
    },
    "small": {
        "batch_size": 4,
        "in_channels": 3,
        "out_channels": 16,
        "depth": 6,
        "height": 8,
        "width": 10,
    },
}

kernel_size = 3
stride = 2
padding = 1
bias_shape = (1, 1, 1, 1)

# Unit inputs give logits so close to 0 that the logsumexp is nearly constant.
LAWS = {"x": ("normal", 0.0, 24.0)}
# With the constructed weights the output is nearly the same for all inputs; with a bias elsewhere
# most of it lies at a bound of the clamp.
WEIGHTS = {"bias": ("uniform", 1.0, 2.0)}


class Model(nn.Module):
    """clamp(y * sigmoid(y + 3) / 6 - bias, -1, 1), where y = logsumexp(conv_transpose(x), dim=1).

    `bias_shape` is accepted and not used: the bias is one number.
    """

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, bias_shape):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding
        )
        self.bias = nn.Parameter(torch.randn(1, 1, 1, 1))

    def forward(self, x):
        x = torch.logsumexp(self.conv_transpose(x), dim=1, keepdim=True)
        x = x * torch.sigmoid(x + 3) / 6
        return torch.clamp(x - self.bias, -1, 1)


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, bias_shape]
