"""Laws from which the judge draws inputs: bounded, several a task, never only U[0,1).

A law is stated in a task file as a tuple, its kind first. Kinds of a float tensor:

===================== ======================= ==================================================
kind                  parameters              values
===================== ======================= ==================================================
``mixed`` (default)                           changes with the draw, see below
``uniform``           low, high               U[low, high)
``signed_uniform``    low, high               U[low, high) with a random sign
``normal``            mean, deviation         N(mean, deviation), cut at 6 deviations
``mixed_unit``                                ``mixed``, of which none is small
``probabilities``                             softmax over the last dimension of ``mixed_unit``
                                              values cut at ±3, so that no logarithm is infinite
``symmetric``                                 ``mixed`` values u as (u + uᵀ) / 2
``upper_triangular``                          ``mixed`` values on and above the diagonal, else 0
``lower_triangular``                          ``mixed`` values on and below the diagonal, else 0
===================== ======================= ==================================================

and of a tensor of any type:

===================== ======================= ==================================================
``integers``          low, high               whole numbers in [low, high)
``bernoulli``         p                       1 with probability p, else 0
``sign``                                      -1 or +1
``given``                                     what the task's own ``get_inputs`` makes: the
                                              default of whole numbers and booleans, and in a task
                                              from elsewhere of all but plain ``torch.rand(n)``
===================== ======================= ==================================================

``mixed`` by draw: 0 is U[0,1), as KernelBench draws; 1 is zero-centred normal; 2 is heavy-tailed
(a cubed normal: one value in a thousand is beyond nine deviations); 4 is small, so that
constants which larger values drown show (an epsilon, where a sum starts), and nowhere above 0, so
that a maximum which starts at 0 does (a negated half-normal); 3 and all from 5 on are normal with a mean away from 0. Scale and mean are drawn for each tensor, and from
draw 1 on each index of the first two dimensions has its own factor (half to double, the mean
included), so that statistics of one part of a tensor say little of another. Where small values say
no more than rounding does (divergences of nearly equal probabilities, a variance beside a large
mean) a task has ``mixed_unit``, whose draw 4 is like 3.

A draw is a function of the generator's state, the device's type, and the arguments alone.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from kernelgym.errors import TaskFormatError

if TYPE_CHECKING:
    from kernelgym.tasks.task import Task

__all__ = ["KINDS", "InputSpec", "Law", "draw_inputs", "read_law"]

_SHIFTED_DRAW = 3
_SMALL_DRAW = 4
# Not smaller: honest kernels write exp(x) - 1, and the budget goes with the output.
_SMALL = 1 / 16
# Kind -> number of parameters.
KINDS = {
    "mixed": 0,
    "mixed_unit": 0,
    "uniform": 2,
    "signed_uniform": 2,
    "normal": 2,
    "probabilities": 0,
    "symmetric": 0,
    "upper_triangular": 0,
    "lower_triangular": 0,
    "integers": 2,
    "bernoulli": 1,
    "sign": 0,
    "given": 0,
}


@dataclasses.dataclass(frozen=True)
class Law:
    """Where an input's values come from; the module's docstring lists the kinds.

    Attributes:
        kind: A key of `KINDS`.
        parameters: Numbers, as many as the kind takes.
    """

    kind: str
    parameters: tuple[float, ...] = ()

    def draw(
        self,
        shape: tuple[int, ...],
        dtype: torch.dtype,
        generator: torch.Generator,
        device: torch.device | str = "cpu",
        index: int = 0,
    ) -> torch.Tensor:
        """Draws one tensor, made where it is needed.

        Args:
            shape: Its shape.
            dtype: Its type.
            generator: A generator of `device`; its state advances.
            device: Where the tensor is made.
            index: Number of the draw, from 0; `mixed` and what is built on it change with it.

        Raises:
            ValueError: The kind is `given`, which only `Task.draw_inputs` can draw.
        """
        value = torch.empty(shape, dtype=_work_type(dtype), device=device)
        if self.kind == "uniform":
            low, high = self.parameters
            _uniform(value, low, high, generator)
        elif self.kind == "signed_uniform":
            low, high = self.parameters
            signs = torch.empty_like(value).bernoulli_(0.5, generator=generator)
            _uniform(value, low, high, generator).mul_(signs.mul_(2).sub_(1))
        elif self.kind == "normal":
            mean, deviation = self.parameters
            _normal(value, generator).mul_(deviation).add_(mean)
        elif self.kind == "integers":
            low, high = self.parameters
            return value.to(dtype).random_(int(low), int(high), generator=generator)
        elif self.kind == "bernoulli":
            value.bernoulli_(self.parameters[0], generator=generator)
        elif self.kind == "sign":
            value.bernoulli_(0.5, generator=generator).mul_(2).sub_(1)
        elif self.kind == "given":
            raise ValueError("a law of kind 'given' is drawn by Task.draw_inputs")
        else:
            unit = self.kind in ("mixed_unit", "probabilities")
            _mixed(value, generator, _SHIFTED_DRAW if unit and index == _SMALL_DRAW else index)
        if self.kind == "probabilities":
            value = torch.softmax(value.clamp_(-3, 3), dim=-1)
        elif self.kind == "symmetric":
            value = (value + value.mT).mul_(0.5)
        elif self.kind == "upper_triangular":
            value.triu_()
        elif self.kind == "lower_triangular":
            value.tril_()
        return value.to(dtype)


@dataclasses.dataclass(frozen=True)
class InputSpec:
    """One argument of `Model.forward`.

    Attributes:
        name: The argument's name.
        shape: Shape of a tensor; `()` for a plain number.
        dtype: Type of a tensor; None for a plain number.
        law: Where a tensor's values come from; None for a plain number.
        value: A plain number or other constant that is passed as it is; None for a tensor.
    """

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype | None
    law: Law | None
    value: Any = None

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor; 0 for a plain number."""
        return math.prod(self.shape) * self.dtype.itemsize if self.dtype else 0


def read_law(statement: Any, names: Mapping[str, Any], where: str) -> Law:
    """A law from a task file's tuple.

    Args:
        statement: Kind and parameters, such as `("uniform", 0.9, 1.1)`.
        names: What a parameter may name instead of being a number: the preset's values.
        where: What to name in an error.

    Raises:
        TaskFormatError: No such kind, or it takes other parameters.
    """
    if not isinstance(statement, (tuple, list)) or not statement or statement[0] not in KINDS:
        raise TaskFormatError(
            f"{where}: expected a law, its kind one of {', '.join(KINDS)}, got {statement!r}"
        )
    kind, *parameters = statement
    parameters = [names.get(p, p) if isinstance(p, str) else p for p in parameters]
    if len(parameters) != KINDS[kind] or not all(isinstance(p, (int, float)) for p in parameters):
        raise TaskFormatError(
            f"{where}: expected {KINDS[kind]} number(s) after {kind!r}, got {parameters!r}"
        )
    return Law(kind, tuple(parameters))


def draw_inputs(
    task: Task,
    size: str,
    seed: int,
    index: int,
    device: torch.device | str,
    dtype: torch.dtype | None,
) -> list[Any]:
    """See `Task.draw_inputs`."""
    specs = task.input_specs(size)
    # Hashed, because neighbouring seeds of a generator give related streams.
    digest = hashlib.sha256(f"{task.id} {seed} {index}".encode()).digest()
    generator = torch.Generator(device).manual_seed(int.from_bytes(digest[:7], "little"))
    given: list[Any] = []
    if any(spec.law is not None and spec.law.kind == "given" for spec in specs):
        given = _given(task, size, generator, torch.device(device))
    values: list[Any] = []
    for position, spec in enumerate(specs):
        if spec.law is None or spec.dtype is None:
            values.append(spec.value)
            continue
        kept = dtype if dtype is not None and spec.dtype.is_floating_point else spec.dtype
        if spec.law.kind == "given":
            values.append(given[position].to(kept))
        else:
            values.append(spec.law.draw(spec.shape, kept, generator, device, index))
    return values


def _given(task: Task, size: str, generator: torch.Generator, device: torch.device) -> list[Any]:
    """What `get_inputs` makes, the global generators left as they were."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices), device:
        torch.manual_seed(generator.initial_seed())
        values: list[Any] = list(task.module(size).get_inputs())
        return values


def _work_type(dtype: torch.dtype) -> torch.dtype:
    """Where values are drawn: half types in themselves (memory), whole numbers in float32."""
    return dtype if dtype.is_floating_point else torch.float32


def _uniform(
    value: torch.Tensor, low: float, high: float, generator: torch.Generator
) -> torch.Tensor:
    return value.uniform_(low, high, generator=generator)


def _normal(value: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return value.normal_(generator=generator).clamp_(-6, 6)


def _mixed(value: torch.Tensor, generator: torch.Generator, index: int) -> None:
    """Fills a tensor in place by the number of the draw."""
    if index == 0:
        _uniform(value, 0.0, 1.0, generator)
        return
    scale = _salt(value, generator, 0.5, 1.5)
    mean = _salt(value, generator, 0.5, 1.5) * _salt(value, generator, -1.0, 1.0).sign()
    _normal(value, generator)
    if index == 2:
        value.pow_(3).mul_(1 / math.sqrt(15))
    value.mul_(scale)
    if index == _SMALL_DRAW:
        value.abs_().mul_(-_SMALL)
    elif index >= _SHIFTED_DRAW:
        value.add_(mean)
    # Last, so that the slices' means differ too.
    for dim in range(min(2, value.dim())):
        shape = [1] * value.dim()
        shape[dim] = value.shape[dim]
        if value.shape[dim] < value.numel():
            gains = torch.empty(shape, dtype=value.dtype, device=value.device)
            value.mul_(_uniform(gains, -1.0, 1.0, generator).exp2_())


def _salt(like: torch.Tensor, generator: torch.Generator, low: float, high: float) -> torch.Tensor:
    return _uniform(torch.empty((), dtype=like.dtype, device=like.device), low, high, generator)
