"""Linear, sigmoid, Linear, logsumexp."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 16384, "input_size": 2048, "hidden_size": 4096, "output_size": 1024},
    "small": {"batch_size": 48, "input_size": 200, "hidden_size": 400, "output_size": 120},
}

# Wide enough for the sigmoid to leave its linear part.
LAWS = {"x": ("normal", 0.0, 8.0)}
# With the constructed weights the output is nearly the same for all inputs.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """logsumexp(linear2(sigmoid(linear1(x))), dim=1): (N,)."""

    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.linear1 = nn.Linear(input_size, hidden_size)
        self.linear2 = nn.Linear(hidden_size, output_size)

    def forward(self, x):
        x = torch.sigmoid(self.linear1(x))
        return torch.logsumexp(self.linear2(x), dim=1)


def get_inputs():
    return [torch.rand(batch_size, input_size)]


def get_init_inputs():
    return [input_size, hidden_size, output_size]
