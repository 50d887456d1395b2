"""Convolutions of one, two and three dimensions, plain and transposed, grouped, dilated.

As a product, its operands are the weights and the patches of the input; as a window, each output
walks through its own patch. The product wins where there are many channels to share the patches.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from kernelgym.agents.kernels import lazy_ops
from kernelgym.agents.kernels.contraction import ProductKernel
from kernelgym.agents.kernels.index import Index, linear, unravel
from kernelgym.agents.kernels.loops import Loop, WindowKernel
from kernelgym.agents.kernels.plan import PlanBuilder
from kernelgym.agents.kernels.values import Scope, Value
from kernelgym.agents.kernels.views import reshaped

__all__ = ["lower_convolution"]

_FEWEST_FOR_PRODUCT = 8
Indices: TypeAlias = "tuple[Index, ...]"


@dataclasses.dataclass(frozen=True)
class _Convolution:
    """A convolution's operands and geometry; output channels are (group, channel in the group)."""

    x: Value
    weight: Value
    shape: tuple[int, ...]  # of the output
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    groups: int

    @property
    def window(self) -> tuple[int, ...]:
        """Input channels of a group, then the kernel's sizes."""
        return (self.x.shape[1] // self.groups, *self.weight.shape[2:])

    def weight_at(self, scope: Scope, group: Index, channel: Index, window: Indices) -> str:
        """The weight between an output channel and an element of its window."""
        if self.transposed:
            source = group * self.window[0] + window[0]
            return scope.element(self.weight, (source, channel, *window[1:]))
        target = group * (self.shape[1] // self.groups) + channel
        return scope.element(self.weight, (target, *window))

    def x_at(self, scope: Scope, image: Index, group: Index, out: Indices, window: Indices) -> str:
        """The input's element under an element of an output's window; 0 in the padding."""
        positions: list[Index] = []
        conditions: list[str] = []
        for d, (o, k) in enumerate(zip(out, window[1:], strict=True)):
            stride, padding, dilation = self.stride[d], self.padding[d], self.dilation[d]
            size = self.x.shape[2 + d]
            if self.transposed:
                at = o + padding + k * -dilation
                position = at // stride
                if at.least < 0:
                    conditions.append(f"{scope.number(at)} >= 0")
                if stride > 1:
                    conditions.append(f"{scope.number(at)} % {stride} == 0")
            else:
                position = o * stride + -padding + k * dilation
                if position.least < 0:
                    conditions.append(f"{scope.number(position)} >= 0")
            if position.greatest >= size:
                conditions.append(f"{scope.number(position)} < {size}")
            positions.append(position)
        indices = (image, group * self.window[0] + window[0], *positions)
        if not conditions:
            return scope.element(self.x, indices)
        condition = scope.bind("bool", " && ".join(conditions))
        return scope.masked(condition, "float", lambda: scope.element(self.x, indices), "0.0f")


def lower_convolution(
    builder: PlanBuilder, operand: str, arguments: Sequence[Any], shape: tuple[int, ...]
) -> Value:
    """Adds the kernel of an `aten.convolution`.

    Args:
        builder: Where to add it.
        operand: What the input is made of, for comments.
        arguments: The operator's: input, weight, bias, stride, padding, dilation, transposed,
            output_padding, groups.
        shape: The output's.
    """
    x, weight, bias, stride, padding, dilation, transposed, _, groups = arguments
    spatial = len(shape) - 2

    def each(sizes: Sequence[int]) -> tuple[int, ...]:
        return tuple(sizes) * spatial if len(sizes) == 1 else tuple(sizes)

    convolution = _Convolution(
        builder.settle(x, operand),
        builder.settle(weight, "weight"),
        shape,
        each(stride),
        each(padding),
        each(dilation),
        bool(transposed),
        int(groups),
    )
    per_group = shape[1] // convolution.groups
    if min(per_group, math.prod(convolution.window)) >= _FEWEST_FOR_PRODUCT:
        value = _as_product(builder, convolution, per_group)
    else:
        value = _as_window(builder, convolution, per_group)
    if bias is not None:
        column = reshaped(bias, (shape[1], *(1,) * spatial))
        value = lazy_ops.arithmetic("add", value, column)
    return value


def _title(convolution: _Convolution) -> str:
    kind = "transposed convolution" if convolution.transposed else "convolution"
    return f"{len(convolution.shape) - 2}-d {kind}"


def _as_window(builder: PlanBuilder, c: _Convolution, per_group: int) -> Value:
    names = ("c", "kx", "ky", "kz")
    loops = tuple(Loop(name, n) for name, n in zip(names, c.window, strict=False) if n)

    def term(scope: Scope, out: Indices, window: Indices) -> str:
        group, channel = out[1] // per_group, out[1] % per_group
        w = c.weight_at(scope, group, channel, window)
        return scope.bind("float", f"{w} * {c.x_at(scope, out[0], group, out[2:], window)}")

    result = builder.buffer(c.shape, "float")
    kernel = WindowKernel(builder.next_number, _title(c), result, loops, "sum", term)
    return builder.add(kernel, result)


def _as_product(builder: PlanBuilder, c: _Convolution, per_group: int) -> Value:
    depth = math.prod(c.window)
    positions = (c.shape[0], *c.shape[2:])
    columns = math.prod(positions)

    def weights(scope: Scope, i: Indices) -> str:
        return c.weight_at(scope, i[0], i[1], unravel(i[2], c.window))

    def patches(scope: Scope, i: Indices) -> str:
        image, *out = unravel(i[2], positions)
        return c.x_at(scope, image, i[0], tuple(out), unravel(i[1], c.window))

    def offset(group: Index, channel: Index, column: Index) -> Index:
        image, *out = unravel(column, positions)
        return linear((image, group * per_group + channel, *out), c.shape)

    result = builder.buffer(c.shape, "float")
    kernel = ProductKernel(
        builder.next_number,
        _title(c),
        result,
        Value((c.groups, per_group, depth), "float", weights),
        Value((c.groups, depth, columns), "float", patches),
        offset,
    )
    return builder.add(kernel, result)
