"""Triplet margin loss: mean of max(|a - p| - |a - n| + margin, 0) over the batch."""

import torch
from torch import nn

PRESETS = {
    "full": {"batch_size": 32768, "dim": 8192},
    "small": {"batch_size": 33, "dim": 517},
}

margin = 1.0


class Model(nn.Module):
    def __init__(self, margin):
        super().__init__()
        self.loss_fn = nn.TripletMarginLoss(margin=margin)

    def forward(self, anchor, positive, negative):
        return self.loss_fn(anchor, positive, negative)


def get_inputs():
    anchor = torch.rand(()) * torch.rand(batch_size, dim)
    return [anchor, torch.rand(batch_size, dim), torch.rand(batch_size, dim)]


def get_init_inputs():
    return [margin]
