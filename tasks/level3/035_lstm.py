"""LSTM of six layers from random initial states, linear layer on the last time step."""

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

# The initial states are drawn in the forward pass.
OUTPUT = "stochastic"

# At default construction the output hardly depends on the sequence.
WEIGHTS = "perturbed"

output_size = 10
dropout = 0.0


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, num_layers, output_size, dropout=0.0):
        super().__init__()
        self.lstm = nn.LSTM(input_size, hidden_size, num_layers, batch_first=True, dropout=dropout)
        self.fc = nn.Linear(hidden_size, output_size)

    def forward(self, x, h0=None, c0=None):
        if h0 is None:
            h0 = self.random_state(x)
        if c0 is None:
            c0 = self.random_state(x)
        out, _ = self.lstm(x, (h0, c0))
        return self.fc(out[:, -1])

    def random_state(self, x):
        shape = (self.lstm.num_layers, x.shape[0], self.lstm.hidden_size)
        return torch.randn(shape, dtype=x.dtype, device=x.device)


def get_inputs():
    return [torch.rand(batch_size, sequence_length, input_size)]


def get_init_inputs():
    return [input_size, hidden_size, num_layers, output_size, dropout]
