"""ATen operators that need no kernel of their own: elementwise ones, views, creation, indexing.

`lower` gives the lazy value of one graph node, or None when the operator is not among them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import fx

from kernelgym.agents.kernels.index import Index
from kernelgym.agents.kernels.pointwise import (
    BINARY,
    COMPARISONS,
    UNARY,
    c_type_of,
    cast,
    literal,
)
from kernelgym.agents.kernels.values import Scope, Value
from kernelgym.agents.kernels.views import VIEWS, broadcast

__all__ = ["arithmetic", "converted", "lower", "operand"]

Indices: TypeAlias = "tuple[Index, ...]"


def operand(argument: Any, dtype: str) -> Value:
    """A lazy value for an argument that may be a number."""
    if isinstance(argument, Value):
        return argument
    text = literal(argument, dtype)
    return Value((), dtype, lambda scope, indices: text)


def lower(name: str, arguments: Sequence[Any], keywords: dict[str, Any], node: fx.Node) -> Any:
    """Lowers one operator.

    Args:
        name: Without namespace and overload, such as `"add"`.
        arguments: As in the graph, nodes replaced by values.
        keywords: The same.
        node: For shape and dtype of the result.

    Returns:
        A Value, or None.
    """
    result = node.meta.get("val")
    if not isinstance(result, torch.Tensor):
        return None
    dtype = c_type_of(result.dtype)
    if dtype is None:
        return None
    shape = tuple(int(size) for size in result.shape)
    if name in UNARY or name in BINARY:
        operands = [operand(a, dtype) for a in arguments if isinstance(a, (Value, int, float))]
        return _elementwise(name, operands, keywords, shape, dtype)
    if name in COMPARISONS:
        return _comparison(COMPARISONS[name], arguments, shape)
    rule = _RULES.get(name)
    return rule(list(arguments), keywords, shape, dtype) if rule is not None else None


def _elementwise(
    name: str, operands: list[Value], keywords: dict[str, Any], shape: tuple[int, ...], dtype: str
) -> Value:
    reads = [broadcast(value, shape) for value in operands]
    alpha = keywords.get("alpha", 1)
    approximate = {k: v for k, v in keywords.items() if k == "approximate"}

    def at(scope: Scope, indices: Indices) -> str:
        given = [read(scope, indices) for read in reads]
        if name in ("isnan", "isinf", "logical_not"):
            return scope.bind("bool", UNARY[name](given[0]))
        xs = [cast(x, v.dtype, dtype) for x, v in zip(given, operands, strict=True)]
        if alpha != 1:
            xs[1] = f"{literal(alpha, dtype)} * {xs[1]}"
        if keywords.get("rounding_mode") == "floor":
            return scope.bind(dtype, f"floorf({xs[0]} / {xs[1]})")
        expression = UNARY[name](*xs, **approximate) if name in UNARY else BINARY[name](*xs)
        return scope.bind(dtype, expression) if expression != xs[0] else xs[0]

    return Value(shape, dtype, at)


def _comparison(sign: str, arguments: Sequence[Any], shape: tuple[int, ...]) -> Value:
    types = [a.dtype for a in arguments if isinstance(a, Value)]
    common = next((t for t in ("double", "float", "int64", "int32", "bool") if t in types), "float")
    operands = [operand(a, common) for a in arguments]
    reads = [broadcast(value, shape) for value in operands]

    def at(scope: Scope, indices: Indices) -> str:
        left, right = (
            cast(read(scope, indices), v.dtype, common)
            for read, v in zip(reads, operands, strict=True)
        )
        return scope.bind("bool", f"{left} {sign} {right}")

    return Value(shape, "bool", at)


def _where(a: list[Any], keywords: Any, shape: tuple[int, ...], dtype: str) -> Value:
    condition, yes, no = operand(a[0], "bool"), operand(a[1], dtype), operand(a[2], dtype)
    reads = [broadcast(v, shape) for v in (condition, yes, no)]

    def at(scope: Scope, indices: Indices) -> str:
        c, x, y = (read(scope, indices) for read in reads)
        return scope.bind(dtype, f"{c} ? {cast(x, yes.dtype, dtype)} : {cast(y, no.dtype, dtype)}")

    return Value(shape, dtype, at)


def _clamp(a: list[Any], keywords: Any, shape: tuple[int, ...], dtype: str) -> Value:
    low = a[1] if len(a) > 1 else keywords.get("min")
    high = a[2] if len(a) > 2 else keywords.get("max")
    value = a[0]
    for name, bound in (("maximum", low), ("minimum", high)):
        if bound is not None:
            value = _elementwise(name, [value, operand(bound, dtype)], {}, shape, dtype)
    return operand(value, dtype)


def _cast(a: list[Any], keywords: Any, shape: tuple[int, ...], dtype: str) -> Value:
    value: Value = a[0]

    def at(scope: Scope, indices: Indices) -> str:
        return scope.bind(dtype, cast(scope.element(value, indices), value.dtype, dtype))

    return Value(shape, dtype, at) if dtype != value.dtype else value


def _full(a: list[Any], keywords: Any, shape: tuple[int, ...], dtype: str) -> Value:
    fill = literal(a[-1], dtype)
    return Value(shape, dtype, lambda s, i: fill)


def _constant(number: int) -> Callable[..., Value]:
    return lambda a, keywords, shape, dtype: _full([number], keywords, shape, dtype)


def _arange(a: list[Any], keywords: Any, shape: tuple[int, ...], dtype: str) -> Value:
    start, step = (a[0] if len(a) > 1 else 0), (a[2] if len(a) > 2 else 1)

    def at(scope: Scope, i: Indices) -> str:
        text = f"{literal(start, dtype)} + {literal(step, dtype)} * {scope.number(i[0])}"
        return scope.bind(dtype, text)

    return Value(shape, dtype, at)


def arithmetic(name: str, left: Value, right: Value | float) -> Value:
    """`left <name> right`, broadcast to `left`'s shape."""
    operands = [left, operand(right, left.dtype)]
    return _elementwise(name, operands, {}, left.shape, left.dtype)


def converted(value: Value, dtype: str) -> Value:
    """A value in another element type."""
    return _cast([value], {}, value.shape, dtype)


_RULES: dict[str, Callable[..., Value | None]] = {
    **VIEWS,
    "_to_copy": _cast,
    "arange": _arange,
    "clamp": _clamp,
    "convert_element_type": _cast,
    "full": _full,
    "full_like": _full,
    "ones": _constant(1),
    "ones_like": _constant(1),
    "scalar_tensor": _full,
    "where": _where,
    "zeros": _constant(0),
    "zeros_like": _constant(0),
}
