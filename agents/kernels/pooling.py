"""Maximum and average pooling of one, two and three dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from kernelgym.agents.kernels import lazy_ops
from kernelgym.agents.kernels.index import Index
from kernelgym.agents.kernels.loops import COMBINE, Loop, WindowKernel
from kernelgym.agents.kernels.plan import PlanBuilder
from kernelgym.agents.kernels.values import Scope, Value

__all__ = ["lower_pooling"]

Indices: TypeAlias = "tuple[Index, ...]"


def lower_pooling(
    builder: PlanBuilder,
    name: str,
    operand: str,
    arguments: Sequence[Any],
    shape: tuple[int, ...],
) -> Value:
    """Adds the kernel of a pooling operator.

    Args:
        builder: Where to add it.
        name: `"max_pool2d_with_indices"`, `"avg_pool3d"`, …
        operand: What the input is made of, for comments.
        arguments: The operator's: input, kernel_size, stride, padding, then for the maximum
            dilation and ceil_mode, for the average ceil_mode, count_include_pad, divisor_override.
        shape: The output's.
    """
    dims = int(name[name.index("d") - 1])
    largest = name.startswith("max")

    def each(position: int, otherwise: Sequence[int] | int) -> tuple[int, ...]:
        given = arguments[position] if len(arguments) > position else ()
        given = [given] if isinstance(given, int) else list(given or ())
        sizes = tuple(given) or ((otherwise,) if isinstance(otherwise, int) else tuple(otherwise))
        return sizes * dims if len(sizes) == 1 else sizes

    def flag(position: int, otherwise: Any) -> Any:
        return arguments[position] if len(arguments) > position else otherwise

    size = each(1, 1)
    stride, padding = each(2, size), each(3, 0)
    dilation = each(4, 1) if largest else (1,) * dims
    x = builder.settle(arguments[0], operand)
    extents = x.shape[-dims:]
    operation = "max" if largest else "sum"

    def term(scope: Scope, out: Indices, window: Indices) -> str:
        positions = [
            o * s + -p + k * d
            for o, s, p, k, d in zip(out[-dims:], stride, padding, window, dilation, strict=True)
        ]
        conditions: list[str] = []
        for position, extent in zip(positions, extents, strict=True):
            if position.least < 0:
                conditions.append(f"{scope.number(position)} >= 0")
            if position.greatest >= extent:
                conditions.append(f"{scope.number(position)} < {extent}")

        def read() -> str:
            return scope.element(x, (*out[:-dims], *positions))

        if not conditions:
            return read()
        condition = scope.bind("bool", " && ".join(conditions))
        return scope.masked(condition, "float", read, COMBINE[operation][1])

    result = builder.buffer(shape, "float")
    loops = tuple(Loop(n, k) for n, k in zip(("kx", "ky", "kz"), size, strict=False))
    title = f"{'maximum' if largest else 'average'} pooling"
    kernel = WindowKernel(builder.next_number, title, result, loops, operation, term)
    pooled = builder.add(kernel, result)
    if largest:
        return pooled
    override = flag(6, None)
    if override:
        return lazy_ops.arithmetic("mul", pooled, 1.0 / override)
    include = bool(flag(5, True))
    ragged = bool(flag(4, False)) or (any(padding) and not include)
    if not ragged:
        return lazy_ops.arithmetic("mul", pooled, 1.0 / math.prod(size))

    def counted(scope: Scope, out: Indices) -> str:
        """How many elements the window holds at an output."""
        factors = []
        for d in range(dims):
            margin = padding[d] if include else 0
            start = scope.number(out[len(shape) - dims + d] * stride[d] + -padding[d])
            low = f"({start} < {-margin} ? {-margin} : {start})"
            end, limit = f"({start} + {size[d]})", extents[d] + margin
            bound = min(extents[d] + padding[d], limit)
            high = f"({end} > {bound} ? {bound} : {end})"
            factors.append(f"({high} - {low})")
        return scope.bind("float", f"static_cast<float>({' * '.join(factors)})")

    return lazy_ops.arithmetic("div", pooled, Value(shape, "float", counted))
