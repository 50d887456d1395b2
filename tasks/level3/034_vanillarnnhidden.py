"""Vanilla RNN over a sequence: hidden = tanh(i2h([x, hidden])), one output h2o(hidden) a step."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "sequence_length": 256,
        "batch_size": 8,
        "input_size": 1024,
        "hidden_size": 256,
        "output_size": 128,
    },
    "small": {
        "sequence_length": 12,
        "batch_size": 4,
        "input_size": 96,
        "hidden_size": 64,
        "output_size": 32,
    },
}

SLICE = {"x": 1, "h0": 0, "output": 1}


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)

    def forward(self, x, h0):
        hidden = h0
        outputs = []
        for t in range(x.shape[0]):
            hidden = torch.tanh(self.i2h(torch.cat([x[t], hidden], dim=1)))
            outputs.append(self.h2o(hidden))
        return torch.stack(outputs)


def get_inputs():
    return [
        torch.rand(sequence_length, batch_size, input_size),
        torch.rand(batch_size, hidden_size),
    ]


def get_init_inputs():
    return [input_size, hidden_size, output_size]
