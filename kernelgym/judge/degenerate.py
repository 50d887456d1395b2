"""Outputs that say nothing: constant, the input itself, or the same whatever the input.

A task with such outputs is solved by an answer that computes nothing, so neither a loaded nor a
synthesised task may have them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch
from torch.utils._pytree import tree_leaves

__all__ = ["TOLERANCE", "Draw", "degeneracy", "float_outputs"]

TOLERANCE = 1e-2
"""Relative to an output's root mean square: what the loosest protocol lets pass."""


@dataclasses.dataclass(frozen=True)
class Draw:
    """One forward pass.

    Attributes:
        inputs: The tensors that went in.
        outputs: The tensors that came out.
    """

    inputs: tuple[torch.Tensor, ...]
    outputs: tuple[torch.Tensor, ...]


def float_outputs(result: object) -> tuple[torch.Tensor, ...]:
    """The tensors in what a model returned, as floating-point numbers."""
    leaves = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    return tuple(leaf.detach().to(torch.float64) for leaf in leaves)


def degeneracy(pairs: Sequence[tuple[Draw, Draw]], others: Sequence[Draw] = ()) -> str:
    """Why the outputs say nothing, or `""`.

    Args:
        pairs: Two draws each from one law; different pairs have different laws.
        others: Draws from further laws, whose outputs only have to be finite.

    Returns:
        The first of: not finite; constant, or an input itself, in every draw; the same for both
        draws of a pair, where each output tensor is.
    """
    draws = [draw for pair in pairs for draw in pair]
    if not draws[0].outputs or all(value.numel() == 0 for value in draws[0].outputs):
        return "expected at least one output tensor with elements, got none"
    for draw in (*draws, *others):
        if not all(bool(torch.isfinite(value).all()) for value in draw.outputs):
            return "expected finite outputs, got infinities or NaN"
    if all(_constant(draw) for draw in draws):
        return "expected outputs that vary, got a constant that passes"
    if all(_copies_input(draw) for draw in draws):
        return "expected outputs that are computed, got an input itself"
    for first, second in pairs:
        if all(_close(a, b) for a, b in zip(first.outputs, second.outputs, strict=True)):
            return "expected outputs that depend on the inputs, got the same for different inputs"
    return ""


def _constant(draw: Draw) -> bool:
    """Whether some constant passes for every output; a single number is judged by pairs."""
    return all(
        value.numel() > 1 and _close(value.mean().expand_as(value), value) for value in draw.outputs
    )


def _copies_input(draw: Draw) -> bool:
    return all(
        any(given.shape == value.shape and _close(given, value) for given in draw.inputs)
        for value in draw.outputs
    )


def _close(answer: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether the root-mean-square error is within the tolerance of the expected values' own."""
    if answer.shape != expected.shape:
        return False
    error = (answer.to(torch.float64) - expected).square().mean().sqrt()
    return bool(error <= TOLERANCE * expected.square().mean().sqrt())
