"""Cross entropy of scores against class indices, mean over the batch."""

import torch
from torch import nn
from torch.nn import functional as F

PRESETS = {
    "full": {"batch_size": 32768, "num_classes": 4096},
    "small": {"batch_size": 67, "num_classes": 401},
}

LAWS = {"targets": ("integers", 0, "num_classes")}


class Model(nn.Module):
    def forward(self, predictions, targets):
        return F.cross_entropy(predictions, targets)


def get_inputs():
    return [torch.rand(batch_size, num_classes), torch.randint(0, num_classes, (batch_size,))]


def get_init_inputs():
    return []
