"""Views and indexing: the same elements at other indices, in memory or not.

Each rule takes an operator's arguments, keyword arguments, and its result's shape and type.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, TypeAlias

from kernelgym.agents.kernels.index import Index, linear, unravel, variable
from kernelgym.agents.kernels.pointwise import cast, literal
from kernelgym.agents.kernels.values import Scope, Value

__all__ = ["VIEWS", "broadcast", "reshaped"]

Indices: TypeAlias = "tuple[Index, ...]"


def reshaped(value: Value, shape: tuple[int, ...]) -> Value:
    """The same elements in the same order, in another shape."""
    if shape == value.shape:
        return value

    def at(scope: Scope, indices: Indices) -> str:
        return scope.element(value, unravel(linear(indices, shape), value.shape))

    return Value(shape, value.dtype, at)


def broadcast(value: Value, shape: tuple[int, ...]) -> Callable[[Scope, Indices], str]:
    """How to read a value's element at the indices of a shape that it broadcasts to."""
    skipped = len(shape) - len(value.shape)

    def at(scope: Scope, indices: Indices) -> str:
        own = indices[skipped:]
        return scope.element(
            value, tuple(Index() if n == 1 else i for n, i in zip(value.shape, own, strict=True))
        )

    return at


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
    return Value(shape, dtype, broadcast(a[0], shape))


def _broadcast_in_dim(a: list[Any], keywords: Any, shape: tuple[int, ...], dtype: str) -> Value:
    value, dims = a[0], a[2]

    def moved(i: Indices) -> Indices:
        return tuple(Index() if n == 1 else i[d] for n, d in zip(value.shape, dims, strict=True))

    return _reindexed(value, shape, moved)


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


VIEWS: dict[str, Callable[..., Value | None]] = {
    "_unsafe_view": _view,
    "as_strided": _as_strided,
    "broadcast_in_dim": _broadcast_in_dim,
    "cat": _cat,
    "constant_pad_nd": _pad,
    "expand": _expand,
    "flip": _flip,
    "gather": _gather,
    "index": _index,
    "index_select": _index_select,
    "permute": _permute,
    "reshape": _view,
    "select": _select,
    "slice": _slice,
    "squeeze": _view,
    "t": _transpose,
    "transpose": _transpose,
    "unfold": _unfold,
    "unsqueeze": _view,
    "view": _view,
}
"""ATen operators by name."""
