"""Inputs that differ from others in a few secret places: what a sample of them does not tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from kernelgym.tasks.laws import InputSpec

__all__ = ["change_few"]

_FEW = 4
# Laws by which every element is drawn alone, so that any may stand in another's place.
_ALONE = frozenset({"mixed", "uniform", "signed_uniform", "normal", "integers"})


def change_few(inputs: Sequence[Any], specs: Sequence[InputSpec], seed: int) -> bool:
    """Changes a few elements of each tensor, in place and within its law.

    Values move between the places; where the law has both signs for any value, they change sign too.

    Args:
        inputs: `forward`'s arguments.
        specs: Their laws.
        seed: Determines the places.

    Returns:
        Whether anything was changed.
    """
    generator = torch.Generator().manual_seed(seed)
    changed = False
    for value, spec in zip(inputs, specs, strict=False):
        kind = spec.law.kind if spec.law is not None else ""
        if not isinstance(value, torch.Tensor) or kind not in _ALONE or value.numel() == 0:
            continue
        places = torch.randint(value.numel(), (_FEW,), generator=generator).unique()
        at = torch.unravel_index(places.to(value.device), value.shape)
        new = value[at].roll(1) * (-1 if kind == "mixed" else 1)
        changed = changed or not torch.equal(new, value[at])
        value[at] = new
    return changed
