"""LSTM of six layers; returns the final cell state of every layer."""

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

SLICE = {"x": 0, "h0": 1, "c0": 1, "output": 1}

output_size = 10
dropout = 0.0


class Model(nn.Module):
    """Scores the last time step as well, and drops the scores."""

    def __init__(self, input_size, hidden_size, num_layers, output_size, dropout=0.0):
        super().__init__()
        self.lstm = nn.LSTM(input_size, hidden_size, num_layers, batch_first=True, dropout=dropout)
        self.fc = nn.Linear(hidden_size, output_size)

    def forward(self, x, h0, c0):
        out, (_, c_n) = self.lstm(x, (h0, c0))
        self.fc(out[:, -1])
        return c_n


def get_inputs():
    return [
        torch.rand(batch_size, sequence_length, input_size),
        torch.rand(num_layers, batch_size, hidden_size),
        torch.rand(num_layers, batch_size, hidden_size),
    ]


def get_init_inputs():
    return [input_size, hidden_size, num_layers, output_size, dropout]
