"""ConvTranspose2d, softmax over channels, bias, scale, sigmoid."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 128, "in_channels": 64, "out_channels": 128, "height": 64, "width": 64},
    "small": {"batch_size": 4, "in_channels": 16, "out_channels": 32, "height": 16, "width": 24},
}

kernel_size = 4
stride = 2
padding = 1
output_padding = 1
scaling_factor = 2.0

# Unit inputs give logits so close to 0 that the softmax is nearly uniform.
LAWS = {"x": ("normal", 0.0, 10.0)}
# With the constructed weights the output is nearly the same for all inputs.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """sigmoid((softmax(conv_transpose(x), dim=1) + bias) * scaling_factor)."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        output_padding,
        bias_shape,
        scaling_factor,
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = torch.softmax(self.conv_transpose(x), dim=1)
        x = (x + self.bias) * self.scaling_factor
        return torch.sigmoid(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        output_padding,
        (out_channels, 1, 1),
        scaling_factor,
    ]
