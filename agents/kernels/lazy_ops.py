"""ATen operators that need no kernel of their own: elementwise ones, views, creation, indexing.

`lower` gives the lazy value of one graph node, or None when the operator is not among them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from kernelgym.agents.kernels.index import Index, linear, unravel, variable
from kernelgym.agents.kernels.pointwise import (
    BINARY,
    COMPARISONS,
    UNARY,
    c_type_of,
    cast,
    literal,
)
from kernelgym.agents.kernels.values import Scope, Value

__all__ = ["arithmetic", "converted", "lower", "operand", "reshaped"]

Indices = tuple[Index, ...]


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


def reshaped(value: Value, shape: tuple[int, ...]) -> Value:
    """The same elements in the same order, in another shape."""
    if shape == value.shape:
        return value

    def at(scope: Scope, indices: Indices) -> str:
        return scope.element(value, unravel(linear(indices, shape), value.shape))

    return Value(shape, value.dtype, at)


def _broadcast(value: Value, shape: tuple[int, ...]) -> Callable[[Scope, Indices], str]:
    skipped = len(shape) - len(value.shape)

    def at(scope: Scope, indices: Indices) -> str:
        own = indices[skipped:]
        return scope.element(
            value, tuple(Index() if n == 1 else i for n, i in zip(value.shape, own, strict=True))
        )

    return at


def _elementwise(
    name: str, operands: list[Value], keywords: dict[str, Any], shape: tuple[int, ...], dtype: str
) -> Value:
    reads = [_broadcast(value, shape) for value in operands]
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
    reads = [_broadcast(value, shape) for value in operands]

    def at(scope: Scope, indices: Indices) -> str:
        left, right = (
            cast(read(scope, indices), v.dtype, common)
            for read, v in zip(reads, operands, strict=True)
        )
        return scope.bind("bool", f"{left} {sign} {right}")

    return Value(shape, "bool", at)


def _where(a: list[Any], keywords: Any, shape: tuple[int, ...], dtype: str) -> Value:
    condition, yes, no = operand(a[0], "bool"), operand(a[1], dtype), operand(a[2], dtype)
    reads = [_broadcast(v, shape) for v in (condition, yes, no)]

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


def _reindexed(
    value: Value, shape: tuple[int, ...], map_indices: Callable[[Indices], Indices]
) -> Value:
    return Value(shape, value.dtype, lambda s, i: s.element(value, map_indices(i)))


def _permute(a: list[Any], keywords: Any, shape: tuple[int, ...], dtype: str) -> Value:
    order = [d % len(shape) for d in a[1]]
    return _reindexed(a[0], shape, lambda i: tuple(i[order.index(d)] for d in range(len(order))))


def _transpose(a: list[Any], keywords: Any, shape: tuple[int, ...], dtype: str) -> Value:
    order = list(range(len(shape)))
    if len(a) == 3:
        order[a[1]], order[a[2]] = order[a[2]], order[a[1]]
    else:
        order.reverse()
    return _permute([a[0], order], keywords, shape, dtype)


def _expand(a: list[Any], keywords: Any, shape: tuple[int, ...], dtype: str) -> Value:
    return Value(shape, dtype, _broadcast(a[0], shape))


def _view(a: list[Any], keywords: Any, shape: tuple[int, ...], dtype: str) -> Value:
    return reshaped(a[0], shape)


def _select(a: list[Any], keywords: Any, shape: tuple[int, ...], dtype: str) -> Value:
    value: Value = a[0]
    dim = a[1] % len(value.shape)
    position = Index(constant=a[2] % value.shape[dim])
    return _reindexed(value, shape, lambda i: (*i[:dim], position, *i[dim:]))


def _slice(a: list[Any], keywords: Any, shape: tuple[int, ...], dtype: str) -> Value:
    value: Value = a[0]
    dim = (a[1] if len(a) > 1 else 0) % len(value.shape)
    size = value.shape[dim]
    start = a[2] if len(a) > 2 and a[2] is not None else 0
    start = max(start + size, 0) if start < 0 else min(start, size)
    step = a[4] if len(a) > 4 else 1
    return _reindexed(value, shape, lambda i: (*i[:dim], i[dim] * step + start, *i[dim + 1 :]))


def _flip(a: list[Any], keywords: Any, shape: tuple[int, ...], dtype: str) -> Value:
    dims = {d % len(shape) for d in a[1]}

    def turned(indices: Indices) -> Indices:
        return tuple(i * -1 + (shape[d] - 1) if d in dims else i for d, i in enumerate(indices))

    return _reindexed(a[0], shape, turned)


def _as_strided(a: list[Any], keywords: Any, shape: tuple[int, ...], dtype: str) -> Value:
    value, strides, first = a[0], a[2], a[3] if len(a) > 3 and a[3] else 0

    def moved(indices: Indices) -> Indices:
        offset = Index(constant=first)
        for index, stride in zip(indices, strides, strict=True):
            offset = offset + index * stride
        return unravel(offset, value.shape)

    return _reindexed(value, shape, moved)


def _unfold(a: list[Any], keywords: Any, shape: tuple[int, ...], dtype: str) -> Value:
    value, dim, step = a[0], a[1] % len(a[0].shape), a[3]

    def moved(i: Indices) -> Indices:
        return (*i[:dim], i[dim] * step + i[-1], *i[dim + 1 : -1])

    return _reindexed(value, shape, moved)


def _cat(a: list[Any], keywords: Any, shape: tuple[int, ...], dtype: str) -> Value:
    parts = [p for p in a[0] if p.shape != (0,)]
    dim = (a[1] if len(a) > 1 else keywords.get("dim", 0)) % len(shape)
    ends = list(itertools.accumulate(p.shape[dim] for p in parts))

    def at(scope: Scope, i: Indices) -> str:
        where = scope.number(i[dim])
        result = ""
        for part, end in reversed(list(zip(parts, ends, strict=True))):
            start = end - part.shape[dim]

            def read(part: Value = part, start: int = start) -> str:
                x = scope.element(part, (*i[:dim], i[dim] + -start, *i[dim + 1 :]))
                return cast(x, part.dtype, dtype)

            inside = (
                f"{where} < {end}" if start == 0 else f"({where} >= {start} && {where} < {end})"
            )
            result = scope.masked(inside, dtype, read, result or literal(0, dtype))
        return result

    return Value(shape, dtype, at)


def _pad(a: list[Any], keywords: Any, shape: tuple[int, ...], dtype: str) -> Value:
    value, pads, fill = a[0], a[1], literal(a[2] if len(a) > 2 else 0, dtype)
    before = [0] * len(shape)
    for k in range(len(pads) // 2):
        before[len(shape) - 1 - k] = pads[2 * k]

    def at(scope: Scope, i: Indices) -> str:
        moved = tuple(index + -n for index, n in zip(i, before, strict=True))
        inside = [
            f"({scope.number(m)} >= 0 && {scope.number(m)} < {n})"
            for m, n, have in zip(moved, value.shape, shape, strict=True)
            if n != have
        ]
        condition = " && ".join(inside) or "true"
        return scope.masked(f"({condition})", dtype, lambda: scope.element(value, moved), fill)

    return Value(shape, dtype, at)


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


def _indirect(scope: Scope, index: Value, indices: Indices, size: int) -> Index:
    """An index read from memory, as an index."""
    read = scope.element(index, indices)
    return variable(scope.bind("int64", f"{read} < 0 ? {read} + {size} : {read}"), size)


def _gather(a: list[Any], keywords: Any, shape: tuple[int, ...], dtype: str) -> Value:
    value, dim, index = a[0], a[1] % len(shape), a[2]

    def at(scope: Scope, i: Indices) -> str:
        found = _indirect(scope, index, i, value.shape[dim])
        return scope.element(value, (*i[:dim], found, *i[dim + 1 :]))

    return Value(shape, dtype, at)


def _index_select(a: list[Any], keywords: Any, shape: tuple[int, ...], dtype: str) -> Value:
    value, dim, index = a[0], a[1] % len(shape), a[2]

    def at(scope: Scope, i: Indices) -> str:
        found = _indirect(scope, index, (i[dim],), value.shape[dim])
        return scope.element(value, (*i[:dim], found, *i[dim + 1 :]))

    return Value(shape, dtype, at)


def _index(a: list[Any], keywords: Any, shape: tuple[int, ...], dtype: str) -> Value | None:
    value, chosen = a[0], a[1]
    dims = [d for d, index in enumerate(chosen) if index is not None]
    if dims != list(range(dims[0], dims[0] + len(dims))) or any(
        chosen[d].dtype == "bool" for d in dims
    ):
        return None
    rank = max(len(chosen[d].shape) for d in dims)
    first = dims[0]

    def at(scope: Scope, i: Indices) -> str:
        at_index = i[first : first + rank]
        found = []
        for d in dims:
            index = chosen[d]
            own = at_index[rank - len(index.shape) :]
            own = tuple(Index() if n == 1 else k for n, k in zip(index.shape, own, strict=True))
            found.append(_indirect(scope, index, own, value.shape[d]))
        return scope.element(value, (*i[:first], *found, *i[first + rank :]))

    return Value(shape, dtype, at)


_RULES: dict[str, Callable[..., Value | None]] = {
    "_to_copy": _cast,
    "_unsafe_view": _view,
    "arange": _arange,
    "as_strided": _as_strided,
    "cat": _cat,
    "clamp": _clamp,
    "constant_pad_nd": _pad,
    "convert_element_type": _cast,
    "expand": _expand,
    "flip": _flip,
    "full": _full,
    "full_like": _full,
    "gather": _gather,
    "index": _index,
    "index_select": _index_select,
    "ones": _constant(1),
    "ones_like": _constant(1),
    "permute": _permute,
    "reshape": _view,
    "scalar_tensor": _full,
    "select": _select,
    "slice": _slice,
    "squeeze": _view,
    "t": _transpose,
    "transpose": _transpose,
    "unfold": _unfold,
    "unsqueeze": _view,
    "view": _view,
    "where": _where,
    "zeros": _constant(0),
    "zeros_like": _constant(0),
}


def arithmetic(name: str, left: Value, right: Value | float) -> Value:
    """`left <name> right`, broadcast to `left`'s shape."""
    operands = [left, operand(right, left.dtype)]
    return _elementwise(name, operands, {}, left.shape, left.dtype)


def converted(value: Value, dtype: str) -> Value:
    """A value in another element type."""
    return _cast([value], {}, value.shape, dtype)
