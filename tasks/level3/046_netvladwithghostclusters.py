"""NetVLAD pooling of 100 features into 32 clusters, with 16 ghost clusters."""

import math

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = {
    "full": {
        "batch_size": 2048,
        "num_features": 100,
        "feature_size": 512,
        "cluster_size": 32,
        "ghost_clusters": 16,
    },
    "small": {
        "batch_size": 4,
        "num_features": 25,
        "feature_size": 96,
        "cluster_size": 16,
        "ghost_clusters": 8,
    },
}

# At default construction the output hardly depends on the features.
WEIGHTS = "perturbed"


class Model(nn.Module):
    """Sums the residuals of the features to learned centres, weighted by a soft assignment.

    Ghost clusters take part in the assignment and are left out of the sum.
    """

    def __init__(self, cluster_size, feature_size, ghost_clusters):
        super().__init__()
        self.cluster_size = cluster_size
        self.feature_size = feature_size
        scale = 1 / math.sqrt(feature_size)
        clusters = cluster_size + ghost_clusters
        self.clusters = nn.Parameter(scale * torch.randn(feature_size, clusters))
        self.batch_norm = nn.BatchNorm1d(clusters)
        self.clusters2 = nn.Parameter(scale * torch.randn(1, feature_size, cluster_size))

    def forward(self, x, mask=None):
        """mask belongs to the interface and is not used."""
        batch, num_features, _ = x.shape
        assignment = x.view(-1, self.feature_size) @ self.clusters
        assignment = self.batch_norm(assignment).softmax(dim=1)
        assignment = assignment[:, : self.cluster_size]
        assignment = assignment.view(batch, num_features, self.cluster_size)

        centres = assignment.sum(dim=1, keepdim=True) * self.clusters2
        vlad = (assignment.transpose(1, 2) @ x).transpose(1, 2) - centres
        vlad = F.normalize(vlad, dim=1)
        vlad = vlad.reshape(batch, self.feature_size * self.cluster_size)
        return F.normalize(vlad, dim=1)


def get_inputs():
    return [torch.rand(batch_size, num_features, feature_size)]


def get_init_inputs():
    return [cluster_size, feature_size, ghost_clusters]
