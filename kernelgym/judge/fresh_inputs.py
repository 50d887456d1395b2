"""Other inputs for each timed call, within their laws, that a candidate cannot foresee.

A tensor of floating-point numbers is multiplied by secret factors from [1/2, 1), which keeps a
bounded law within its bounds. The factors differ between neighbours along every dimension, so that
an output that one common factor would leave as it is (a normalisation's, an argmax's) changes too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from kernelgym.tasks.laws import InputSpec

__all__ = ["FreshInputs"]

# Of a larger tensor's factors, so many are drawn and used again, some places further in each row.
_MOST_FACTORS = 2**22
_SHIFT = 7
# Laws whose values one common factor leaves within the law, and many do not; and those that none do.
_WHOLE = frozenset({"symmetric", "given"})
_KEPT = frozenset({"integers", "bernoulli"})


class FreshInputs:
    """Writes new inputs wherever they are wanted.

    Args:
        base: `forward`'s arguments that the new ones are made from. They are read, never written.
        specs: The arguments' laws, as far as there are some.
        seed: Determines the factors.
        device: Where the tensors lie.
    """

    def __init__(
        self, base: Sequence[Any], specs: Sequence[InputSpec], seed: int, device: torch.device
    ) -> None:
        self._base = [v.contiguous() if isinstance(v, torch.Tensor) else v for v in base]
        self._kinds = [_kind(specs, index) for index in range(len(self._base))]
        self._generator = torch.Generator(device).manual_seed(seed)
        self._factors: list[torch.Tensor | None] = [None] * len(self._base)

    def draw(self) -> None:
        """Draws new factors; `write` and `copies` give other inputs from now on."""
        for index, (value, kind) in enumerate(zip(self._base, self._kinds, strict=True)):
            if isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel():
                self._factors[index] = self._drawn(value, kind)

    def write(self, targets: Sequence[Any]) -> None:
        """Writes the inputs into tensors of the same shapes; other arguments are left alone."""
        for value, factors, target in zip(self._base, self._factors, targets, strict=True):
            if factors is not None:
                rows = _rows(value)
                torch.mul(value.view(rows), factors, out=target.view(rows))

    def copies(self) -> list[Any]:
        """The inputs, in memory of their own."""
        made = [v.clone() if isinstance(v, torch.Tensor) else v for v in self._base]
        self.write(made)
        return made

    def restore(self, targets: Sequence[Any]) -> None:
        """Writes what the inputs are made from into tensors of the same shapes."""
        for value, target in zip(self._base, targets, strict=True):
            if isinstance(value, torch.Tensor):
                target.copy_(value)

    def _drawn(self, value: torch.Tensor, kind: str) -> torch.Tensor | None:
        if kind in _KEPT:
            return None
        rows, columns = _rows(value)
        count = 1 if kind in _WHOLE else columns + _SHIFT * (rows - 1)
        factors = torch.empty(count, dtype=value.dtype, device=value.device)
        if kind == "sign":
            factors.bernoulli_(0.5, generator=self._generator).mul_(2).sub_(1)
        else:
            factors.uniform_(0.5, 1.0, generator=self._generator)
        return factors if count == 1 else factors.as_strided((rows, columns), (_SHIFT, 1))


def _rows(value: torch.Tensor) -> tuple[int, int]:
    """How a tensor falls into rows: as many of its last dimensions make one as are not too many."""
    columns = 1
    for extent in reversed(value.shape):
        if columns > 1 and columns * extent > _MOST_FACTORS:
            break
        columns *= extent
    return value.numel() // columns, columns


def _kind(specs: Sequence[InputSpec], index: int) -> str:
    """The kind of an argument's law; of one that has none nothing is known."""
    law = specs[index].law if index < len(specs) else None
    return law.kind if law is not None else "given"
