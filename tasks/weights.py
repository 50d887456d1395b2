"""Perturbed weights: parameters moved off values that make an output say little.

A normalisation's constructed weight and bias are 1 and 0, so that leaving them out changes nothing;
other constructors put a whole network where its output hardly depends on its input.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

import torch

from kernelgym.errors import TaskFormatError
from kernelgym.tasks.laws import read_law

if TYPE_CHECKING:
    from kernelgym.tasks.task import Task

__all__ = ["perturb"]

# Noise over the root mean square of a parameter, and in place of it where that is 0.
_RELATIVE = 0.3
_ABSOLUTE = 0.2
# Torch draws matrices and kernels with variance 1/(3 fan_in), so that a deep stack of ReLU layers
# forgets its input; with 2/fan_in it does not.
_GAIN = math.sqrt(6)


@torch.no_grad()
def perturb(task: Task, model: torch.nn.Module, size: str, seed: int) -> None:
    """See `Task.perturb`."""
    stated = task.file.judge.get("WEIGHTS")
    laws = dict(stated) if isinstance(stated, dict) else {}
    entries = model.state_dict()
    for key in laws:
        if key not in entries:
            raise TaskFormatError(
                f"{task.path}: WEIGHTS: expected keys of the state ({', '.join(entries)}), "
                f"got {key!r}"
            )
    parameters = {name for name, _ in model.named_parameters()}
    for key, value in entries.items():
        # Drawn on the CPU, so that every device has the same weights.
        digest = hashlib.sha256(f"{task.id} {seed} {key}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "little"))
        if key in laws:
            law = read_law(laws[key], task.file.values(size), f"{task.path}: WEIGHTS[{key!r}]")
            value.copy_(law.draw(tuple(value.shape), torch.float32, generator))
        elif key in parameters or key.endswith("running_mean"):
            noise = torch.randn(value.shape, generator=generator).to(value)
            if value.dim() >= 2 and value.std(correction=0) > 0:  # else a constant, such as ones
                value.mul_(_GAIN)
            scale = value.square().mean().sqrt() * _RELATIVE
            value.add_(noise * torch.where(scale > 0, scale, _ABSOLUTE))
        elif key.endswith("running_var"):
            noise = torch.randn(value.shape, generator=generator).to(value)
            value.mul_(torch.exp(_RELATIVE * noise))
