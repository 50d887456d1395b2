"""Kullback-Leibler divergence of predicted from target distributions, mean over the batch."""

import torch
from torch import nn
from torch.nn import functional as F

PRESETS = {
    "full": {"batch_size": 16384, "dim": 16384},
    "small": {"batch_size": 33, "dim": 517},
}

LAWS = {"predictions": ("probabilities",), "targets": ("probabilities",)}


class Model(nn.Module):
    def forward(self, predictions, targets):
        return F.kl_div(torch.log(predictions), targets, reduction="batchmean")


def get_inputs():
    scores = torch.rand(()) * torch.rand(batch_size, dim)
    return [scores.softmax(dim=-1), torch.rand(batch_size, dim).softmax(dim=-1)]


def get_init_inputs():
    return []
