"""Trivial answers: outputs that skip a task's work. A check that accepts one cannot score the task.

Each answer sees what a cheat could know: the inputs, and a rehearsal, which is another draw of the
same laws with the reference's output for it. That is more than a candidate knows under `audited`,
where it cannot tell which law comes next. Answers that do part of the work (`one_slice`,
`first_columns`) take their part from the right output.

===================== ============================================================================
answer                what it returns
===================== ============================================================================
``zeros``             0 everywhere
``infinity``          infinity everywhere
``constant``          the mean of the rehearsal's output
``position_mean``     the mean of the rehearsal's output over its first dimension, for each position
``other_output``      the rehearsal's output
``input``             an input, reshaped where it has as many elements
``affine``            a·x + b of an input of the output's shape, fitted on the rehearsal
``input_mean``        an input of the output's shape, averaged along one dimension
``partial_mean``      the mean over the first eighth of the dimension that the task reduces, as
                      a·mean + b, fitted on the rehearsal
``partial_max``       the same with the maximum
``partial_min``       the same with the minimum
``one_slice``         the right output at index 0 of one dimension, repeated along it
``first_columns``     the right output in the first eighth of its last dimension, else 0
``sub_sample``        for a loss: the reference on the first eighth of the rows
``head_of_inputs``    the reference on inputs whose last seven eighths of columns are the mean of the
                      rehearsal's
``closed_form``       for a loss: its expectation for U[0,1), from a few of the values
===================== ============================================================================

A name that stands for several answers is followed by what tells them apart: ``input:x``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.nn import functional as F

__all__ = ["ANSWERS", "Case", "answers"]

Run = Callable[[Sequence[Any]], list[torch.Tensor]]

_EIGHTH = 8
_FEW = 4096  # values of which a closed form takes its estimate
_CHUNK = 1 << 26


@dataclasses.dataclass(frozen=True)
class Case:
    """What an answer may look at, for one output of one draw.

    Attributes:
        task: Id of the task.
        names: Names of the arguments of `forward`.
        inputs: This draw's arguments.
        right: The right output; only those answers that do part of the work look at it.
        dtype: The output's type.
        rehearsed_inputs: Another draw's arguments.
        rehearsed: The reference's output for them.
        run: Runs the reference and gives this output of it.
    """

    task: str
    names: tuple[str, ...]
    inputs: Sequence[Any]
    right: torch.Tensor
    dtype: torch.dtype
    rehearsed_inputs: Sequence[Any]
    rehearsed: torch.Tensor
    run: Callable[[Sequence[Any]], torch.Tensor]

    @property
    def shape(self) -> torch.Size:
        """The output's shape."""
        return self.right.shape

    def floats(self) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
        """(name, this draw's value, the rehearsal's) of each floating-point input."""
        for name, value, other in zip(self.names, self.inputs, self.rehearsed_inputs, strict=False):
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                yield name, value, other


Answer = Callable[[Case], Iterator[tuple[str, torch.Tensor]]]


def answers(case: Case, wanted: Callable[[str], bool]) -> Iterator[tuple[str, torch.Tensor]]:
    """The answers that apply to a case, one at a time, in the output's shape and type.

    Args:
        case: What they may look at.
        wanted: Given an answer's name without what follows a colon, whether to make it at all.

    Yields:
        (name, output), the name as in the module's docstring.
    """
    for name, make in _MAKERS.items():
        if not wanted(name):
            continue
        for suffix, value in make(case):
            full = value.to(case.dtype).expand(case.shape)
            yield f"{name}:{suffix}" if suffix else name, full


def _zeros(case: Case) -> Iterator[tuple[str, torch.Tensor]]:
    yield "", torch.zeros((), device=case.right.device)


def _infinity(case: Case) -> Iterator[tuple[str, torch.Tensor]]:
    if case.dtype.is_floating_point:
        yield "", torch.full((), math.inf, device=case.right.device)


def _constant(case: Case) -> Iterator[tuple[str, torch.Tensor]]:
    yield "", _mean(case.rehearsed)


def _position_mean(case: Case) -> Iterator[tuple[str, torch.Tensor]]:
    if case.right.dim() > 1 and case.dtype.is_floating_point:
        yield "", case.rehearsed.mean(0, keepdim=True)


def _other_output(case: Case) -> Iterator[tuple[str, torch.Tensor]]:
    yield "", case.rehearsed


def _input(case: Case) -> Iterator[tuple[str, torch.Tensor]]:
    for name, value, _ in case.floats():
        if value.numel() == case.right.numel():
            yield name, value.reshape(case.shape)


def _affine(case: Case) -> Iterator[tuple[str, torch.Tensor]]:
    if case.dtype.is_floating_point:
        for name, value, other in case.floats():
            if value.shape == case.shape:
                slope, offset = _fit(other, case.rehearsed)
                yield name, value * slope + offset


def _input_mean(case: Case) -> Iterator[tuple[str, torch.Tensor]]:
    for name, value, _ in case.floats():
        if value.shape == case.shape:
            for dim in range(value.dim()):
                if value.shape[dim] > 1:
                    yield f"{name},{dim}", value.mean(dim, keepdim=True)


def _partial(reduce: Callable[[torch.Tensor, int], torch.Tensor]) -> Answer:
    def make(case: Case) -> Iterator[tuple[str, torch.Tensor]]:
        if not case.dtype.is_floating_point or case.right.numel() < 2:
            return
        for name, value, other in case.floats():
            for dim in range(value.dim()):
                kept = [*value.shape[:dim], *value.shape[dim + 1 :]]
                alone = [*value.shape[:dim], 1, *value.shape[dim + 1 :]]
                if value.shape[dim] >= _EIGHTH and list(case.shape) in (kept, alone):
                    length = value.shape[dim] // _EIGHTH
                    learnt, seen = (
                        reduce(x.narrow(dim, 0, length), dim).reshape(case.shape)
                        for x in (other, value)
                    )
                    slope, offset = _fit(learnt, case.rehearsed)
                    yield f"{name},{dim}", seen * slope + offset

    return make


def _one_slice(case: Case) -> Iterator[tuple[str, torch.Tensor]]:
    for dim in range(case.right.dim()):
        if case.shape[dim] > 1:
            yield str(dim), case.right.narrow(dim, 0, 1)


def _first_columns(case: Case) -> Iterator[tuple[str, torch.Tensor]]:
    if case.right.dim() and case.shape[-1] >= _EIGHTH:
        length = case.shape[-1] // _EIGHTH
        value = torch.zeros(case.shape, dtype=case.dtype, device=case.right.device)
        value[..., :length] = case.right[..., :length]
        yield "", value


def _sub_sample(case: Case) -> Iterator[tuple[str, torch.Tensor]]:
    if case.right.dim():
        return
    values = []
    for value in case.inputs:
        # One number a row is a class; a vector of floats is one number a column.
        if isinstance(value, torch.Tensor) and (value.dim() > 1 or not value.is_floating_point()):
            value = value[: max(1, value.shape[0] // _EIGHTH)]
        values.append(value)
    yield "", case.run(values)


def _head_of_inputs(case: Case) -> Iterator[tuple[str, torch.Tensor]]:
    means = {name: _mean(other) for name, _, other in case.floats()}
    values = []
    for name, value in zip(case.names, case.inputs, strict=False):
        if name in means and value.dim() and value.shape[-1] >= _EIGHTH:
            length = value.shape[-1] // _EIGHTH
            head = value.clone()
            head[..., length:] = means[name].to(value.dtype)
            values.append(head)
        else:
            values.append(value)
    yield "", case.run(values)


def _closed_form(case: Case) -> Iterator[tuple[str, torch.Tensor]]:
    if case.task in _LOSSES:
        yield "", _LOSSES[case.task](*case.inputs)


def _mse(predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    scale = predictions.flatten()[:_FEW].max()
    return scale**2 / 3 - scale / 2 + 1 / 3


def _huber(predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return _mse(predictions, targets) / 2  # no two values are 1 apart


def _hinge(predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return 1 - targets.float().mean() / 2


def _cross_entropy(scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    rows = max(1, scores.shape[0] // 64)
    normaliser = scores[:rows].logsumexp(-1).mean()
    return normaliser - scores.gather(1, targets.reshape(-1, 1)).mean()


def _kl_divergence(predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return F.kl_div(predictions[:1].log(), targets[:1], reduction="batchmean")


_LOSSES: dict[str, Callable[..., torch.Tensor]] = {
    "L1/94": _mse,
    "L1/95": _cross_entropy,
    "L1/96": _huber,
    "L1/98": _kl_divergence,
    "L1/100": _hinge,
}

_MAKERS: dict[str, Answer] = {
    "zeros": _zeros,
    "infinity": _infinity,
    "constant": _constant,
    "position_mean": _position_mean,
    "other_output": _other_output,
    "input": _input,
    "affine": _affine,
    "input_mean": _input_mean,
    "partial_mean": _partial(lambda x, dim: x.mean(dim)),
    "partial_max": _partial(lambda x, dim: x.amax(dim)),
    "partial_min": _partial(lambda x, dim: x.amin(dim)),
    "one_slice": _one_slice,
    "first_columns": _first_columns,
    "sub_sample": _sub_sample,
    "head_of_inputs": _head_of_inputs,
    "closed_form": _closed_form,
}

ANSWERS = tuple(_MAKERS)
"""Names of the answers, in the order in which they are tried."""


def _mean(value: torch.Tensor) -> torch.Tensor:
    """The mean, in fp64; whole numbers too."""
    return value.flatten().sum(dtype=torch.float64) / max(1, value.numel())


def _fit(x: torch.Tensor, y: torch.Tensor) -> tuple[float, float]:
    """Slope and offset of the best affine map from x to y, of one shape; summed in parts."""
    x, y = x.flatten(), y.flatten()
    mean_x, mean_y = _mean(x), _mean(y)
    covariance = torch.zeros((), dtype=torch.float64, device=x.device)
    variance = torch.zeros_like(covariance)
    for part_x, part_y in zip(x.split(_CHUNK), y.split(_CHUNK), strict=True):
        off = part_x.double() - mean_x
        covariance += (off * (part_y.double() - mean_y)).sum()
        variance += off.square().sum()
    slope = float(covariance / variance) if float(variance) > 0 else 0.0
    return slope, float(mean_y) - slope * float(mean_x)
