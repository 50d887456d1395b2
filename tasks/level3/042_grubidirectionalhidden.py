"""Bidirectional GRU of six layers; returns the final hidden states."""

import torch
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 10,
        "sequence_length": 512,
        "input_size": 128,
        "hidden_size": 256,
        "num_layers": 6,
    },
    "small": {
        "batch_size": 3,
        "sequence_length": 11,
        "input_size": 32,
        "hidden_size": 48,
        "num_layers": 3,
    },
}

SLICE = {"x": 1, "h0": 1, "output": 1}


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, num_layers=3, bias=True, batch_first=False):
        super().__init__()
        self.gru = nn.GRU(
            input_size,
            hidden_size,
            num_layers,
            bias=bias,
            batch_first=batch_first,
            bidirectional=True,
        )

    def forward(self, x, h0):
        _, h_n = self.gru(x, h0)
        return h_n


def get_inputs():
    return [
        torch.rand(sequence_length, batch_size, input_size),
        torch.rand(2 * num_layers, batch_size, hidden_size),
    ]


def get_init_inputs():
    return [input_size, hidden_size, num_layers]
