"""Salted draws: seeds, input values and weights that a candidate cannot know beforehand."""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from kernelgym.errors import ReferenceFault
from kernelgym.tasks import Task
from kernelgym.tasks.laws import InputSpec

__all__ = ["Salt", "draw_inputs", "perturb_state"]


@dataclasses.dataclass(frozen=True)
class Salt:
    """The secret from which a judgement draws all its values."""

    value: bytes

    @classmethod
    def make(cls, seed: int | None, task: str) -> Salt:
        """A fresh secret, or with a seed the same one each time for a task."""
        if seed is None:
            return cls(secrets.token_bytes(32))
        return cls(hashlib.sha256(f"kernelgym:{seed}:{task}".encode()).digest())

    @property
    def commitment(self) -> str:
        """SHA-256 of the secret, hexadecimal: published, so that it can be revealed later."""
        return hashlib.sha256(self.value).hexdigest()

    def seed(self, label: str) -> int:
        """A 63-bit seed for one purpose."""
        digest = hashlib.sha256(self.value + label.encode()).digest()
        return int.from_bytes(digest[:8], "little") >> 1


def draw_inputs(
    task: Task,
    size: str,
    specs: Sequence[InputSpec],
    salt: Salt,
    index: int,
    device: torch.device,
    *,
    upstream: bool,
) -> list[Any]:
    """Draws one set of inputs.

    Args:
        task: The task.
        size: Its preset.
        specs: The task's inputs, in order.
        salt: The judgement's secret.
        index: Number of the draw; laws differ between draws (see `kernelgym.tasks.laws`).
        device: Where the tensors are made.
        upstream: Draw by upstream's law (that of draw 0) every time.

    Returns:
        Tensors, and plain numbers where the task takes them.

    Raises:
        ReferenceFault: A law gave a value that is not finite.
    """
    given = _given(task, size, salt.seed(f"given:{index}"), device)
    if upstream:
        return given
    generator = torch.Generator(device=device).manual_seed(salt.seed(f"inputs:{index}"))
    values: list[Any] = []
    for spec, as_given in zip(specs, given, strict=True):
        if spec.law is None or spec.dtype is None or spec.law.kind == "given":
            values.append(as_given)
            continue
        tensor = spec.law.draw(spec.shape, spec.dtype, generator, device, index)
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise ReferenceFault(f"input {spec.name}: expected finite values from its law")
        values.append(tensor)
    return values


def _given(task: Task, size: str, seed: int, device: torch.device) -> list[Any]:
    """What the task's own `get_inputs` makes under a seed."""
    with torch.random.fork_rng(devices=[]), device:
        torch.manual_seed(seed)
        return list(task.module(size).get_inputs())


def perturb_state(state: Mapping[str, torch.Tensor], salt: Salt) -> dict[str, torch.Tensor]:
    """Moves every floating entry of a state away from its construction value.

    For tasks whose construction values make the output say little (a norm with weight 1 and bias 0
    followed by a mean, say). Scale factors stay positive and variances stay variances.

    Args:
        state: The constructed state, on the CPU.
        salt: The judgement's secret.
    """
    moved = {}
    for key, value in state.items():
        if not value.is_floating_point():
            moved[key] = value.clone()
            continue
        generator = torch.Generator().manual_seed(salt.seed(f"state:{key}"))
        noise = torch.randn(value.shape, generator=generator, dtype=torch.float32)
        name = key.rsplit(".", 1)[-1]
        if name == "running_var" or (name == "weight" and bool((value == 1).all())):
            moved[key] = (value * (1 + 0.5 * noise.abs())).to(value.dtype)
        elif bool((value == value.flatten()[:1]).all()):
            moved[key] = (value + 0.2 * noise).to(value.dtype)
        else:
            spread = float(value.std()) if value.numel() > 1 else 0.1
            moved[key] = (value + 0.25 * spread * noise).to(value.dtype)
    return moved
