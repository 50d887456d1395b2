"""From a graph of ATen operators to a plan of kernels."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from kernelgym.agents.kernels import lazy_ops
from kernelgym.agents.kernels.contraction import ProductKernel
from kernelgym.agents.kernels.convolution import lower_convolution
from kernelgym.agents.kernels.index import linear
from kernelgym.agents.kernels.plan import Plan, PlanBuilder
from kernelgym.agents.kernels.pointwise import c_type_of
from kernelgym.agents.kernels.pooling import lower_pooling
from kernelgym.agents.kernels.rows import Rows
from kernelgym.agents.kernels.scans import ScanKernel
from kernelgym.agents.kernels.trace import Traced
from kernelgym.agents.kernels.values import Buffer, Value
from kernelgym.agents.kernels.views import VIEWS, reshaped
from kernelgym.errors import UsageError

__all__ = ["UnsupportedOperator", "lower"]


class UnsupportedOperator(UsageError):
    """The task uses an operator for which there is no kernel."""


def lower(traced: Traced, name: str) -> Plan:
    """Lowers a traced forward pass.

    Args:
        traced: The pass.
        name: Of the plan's host function; also tells its buffers from those of other plans.

    Raises:
        UnsupportedOperator: There is no kernel for one of its operators.
    """
    return _Lowering(traced, name).plan()


class _Lowering:
    def __init__(self, traced: Traced, name: str) -> None:
        self._traced = traced
        self._name = name
        self._builder = PlanBuilder("t")
        self._values: dict[fx.Node, Any] = {}
        self._arguments: list[Buffer] = []
        self._names: dict[Value, tuple[str, ...]] = {}

    def plan(self) -> Plan:
        sources = iter(self._traced.sources)
        outputs: tuple[Buffer, ...] = ()
        for node in self._traced.graph.nodes:
            if node.op == "placeholder":
                self._values[node] = self._argument(node, next(sources))
            elif node.op == "get_attr":
                source = self._traced.constants.get(str(node.target))
                if source is None:
                    raise UnsupportedOperator("a tensor that forward makes from Python numbers")
                self._values[node] = self._argument(node, source)
            elif node.op == "call_function":
                self._values[node] = self._lower(node)
            elif node.op == "output":
                results = [self._value(a) for a in node.args[0]]
                outputs = tuple(self._builder.stored(v, self._title(v)) for v in results)
        return self._builder.plan(self._name, tuple(self._arguments), outputs, self._traced.several)

    def _argument(self, node: fx.Node, source: str) -> Any:
        meta = node.meta["val"]
        dtype = c_type_of(meta.dtype)
        if dtype is None:
            return None  # it matters when somebody reads it
        name = "in_" + re.sub(r"\W+", "_", source.removeprefix("self.")).strip("_")
        if any(name == buffer.name for buffer in self._arguments):
            name = f"{name}_{len(self._arguments)}"
        shape = tuple(int(n) for n in meta.shape)
        buffer = Buffer(name, shape, dtype, source)
        self._arguments.append(buffer)
        return self._builder.argument(buffer)

    def _value(self, argument: Any) -> Any:
        if isinstance(argument, fx.Node):
            return self._values[argument]
        if isinstance(argument, (list, tuple)):
            return [self._value(a) for a in argument]
        return argument

    def _lower(self, node: fx.Node) -> Any:
        arguments = [self._value(a) for a in node.args]
        keywords = {k: self._value(v) for k, v in node.kwargs.items()}
        if not isinstance(node.target, torch._ops.OpOverload):
            source, position = arguments  # getitem
            return source[position]
        name = node.target._schema.name.split("::")[-1]
        if name == "copy_":  # the functionalised form of an update of a module's buffer
            return None
        rule = _RULES.get(name)
        if rule is not None:
            return rule(self, name, arguments, keywords, node)
        value = lazy_ops.lower(name, arguments, keywords, node)
        if value is not None:
            self._note(value, name, arguments)
        if value is None and not name.startswith(("bernoulli", "rand")):
            # Not needed may be what is not known: it matters when somebody reads it.
            return None if not node.users else self._unsupported(node)
        return value if value is not None else self._unsupported(node)

    def _note(self, value: Value, name: str, arguments: list[Any]) -> None:
        """Remembers which elementwise operators a lazy value is made of, for kernels' comments."""
        names = [n for a in arguments if isinstance(a, Value) for n in self._names.get(a, ())]
        own = () if name in VIEWS or name.startswith("_") else (name,)
        self._names[value] = tuple(dict.fromkeys((*names, *own)))

    def _title(self, value: Value) -> str:
        return ", ".join(self._names.get(value, ())[-8:]) or "copy"

    @staticmethod
    def _unsupported(node: fx.Node) -> Any:
        raise UnsupportedOperator(f"expected operators with a kernel, got {node.target}")

    # --- reductions ---------------------------------------------------------------------------

    def _dims(self, value: Value, given: Any) -> tuple[int, ...]:
        rank = len(value.shape)
        if given is None or given == []:
            return tuple(range(rank))
        chosen = given if isinstance(given, (list, tuple)) else [given]
        return tuple(sorted(d % rank for d in chosen))

    def _reduction(self, name: str, a: list[Any], k: dict[str, Any], node: fx.Node) -> Any:
        operation = _REDUCTIONS[name]
        shape, dtype = _result(node)
        value = a[0]
        if value.shape == ():
            return value
        dims = self._dims(value, a[1] if len(a) > 1 else k.get("dim"))
        if operation in ("any", "all"):
            value = lazy_ops.converted(value, "bool")
        elif operation == "sum":
            value = lazy_ops.converted(value, dtype)
        value = self._one_row(operation, value, dims)
        reduced = self._builder.reduce(operation, value[0], value[1], name)
        return reshaped(reduced, shape)

    def _one_row(
        self, operation: str, value: Value, dims: tuple[int, ...]
    ) -> tuple[Value, tuple[int, ...]]:
        """Positions within all dimensions count along the flat tensor."""
        if operation in ("argmax", "argmin") and len(dims) > 1:
            flat = reshaped(value, (_product(value.shape),))
            return flat, (0,)
        return value, dims

    def _mean(self, name: str, a: list[Any], k: dict[str, Any], node: fx.Node) -> Any:
        shape, _ = _result(node)
        value = a[0]
        dims = self._dims(value, a[1] if len(a) > 1 else None)
        count = _product(tuple(value.shape[d] for d in dims))
        total = self._builder.reduce("sum", value, dims, "mean")
        mean = lazy_ops.arithmetic("mul", total, 1.0 / count)
        return reshaped(mean, shape)

    def _var_mean(self, name: str, a: list[Any], k: dict[str, Any], node: fx.Node) -> Any:
        value = a[0]
        dims = self._dims(value, a[1] if len(a) > 1 else k.get("dim"))
        count = _product(tuple(value.shape[d] for d in dims))
        correction = k.get("correction", 1)
        correction = 1 if correction is None else correction
        value = self._builder.prefer_epilogue(value, self._title(value))
        mean = lazy_ops.arithmetic(
            "mul", self._builder.reduce("sum", value, dims, "mean"), 1.0 / count
        )
        centred = lazy_ops.arithmetic("sub", value, mean)
        squares = lazy_ops.arithmetic("mul", centred, centred)
        total = self._builder.reduce("sum", squares, dims, "variance")
        free = max(count - correction, 0)
        variance = lazy_ops.arithmetic("mul", total, 1.0 / free if free else float("nan"))
        results = [variance, mean]
        if name == "var":
            return reshaped(variance, _result(node)[0])
        shapes = [tuple(int(n) for n in t.shape) for t in node.meta["val"]]
        return [reshaped(v, s) for v, s in zip(results, shapes, strict=True)]

    def _extremum(self, name: str, a: list[Any], k: dict[str, Any], node: fx.Node) -> Any:
        """max.dim and min.dim: values and positions."""
        value = a[0]
        dims = self._dims(value, a[1] if len(a) > 1 else None)
        if not isinstance(node.meta["val"], (tuple, list)):
            total = self._builder.reduce(name, value, dims, name)
            return reshaped(total, _result(node)[0])
        wanted = {user.args[1] for user in node.users}
        shapes = [tuple(int(n) for n in t.shape) for t in node.meta["val"]]
        results: list[Value | None] = [None, None]
        for position, operation in enumerate((name, f"arg{name}")):
            if position in wanted:
                reduced = self._builder.reduce(operation, value, dims, operation)
                results[position] = reshaped(reduced, shapes[position])
        return results

    def _scan(self, name: str, a: list[Any], k: dict[str, Any], node: fx.Node) -> Any:
        value = lazy_ops.converted(a[0], _result(node)[1])
        dim = a[1] % len(value.shape)
        value = self._builder.prefer_epilogue(value, self._title(value))
        result = self._builder.buffer(value.shape, value.dtype)
        operation = {"cumsum": "sum", "cumprod": "prod"}[name]
        kernel = ScanKernel(
            self._builder.next_number, name, Rows(value.shape, (dim,)), operation, value, result
        )
        return self._builder.add(kernel, result)

    # --- products -----------------------------------------------------------------------------

    def _product(self, name: str, a: list[Any], k: dict[str, Any], node: fx.Node) -> Any:
        shape, dtype = _result(node)
        left = self._builder.settle(a[0], self._title(a[0]))
        right = self._builder.settle(a[1], self._title(a[1]))
        if dtype != "float":
            return self._unsupported(node)
        batched = shape if len(shape) == 3 else (1, *_as_matrix(left, right))
        left = reshaped(left, (batched[0], batched[1], left.shape[-1]))
        right = reshaped(right, (batched[0], left.shape[2], batched[2]))
        result = self._builder.buffer(shape, dtype)
        kernel = ProductKernel(
            self._builder.next_number,
            name,
            result,
            left,
            right,
            lambda b, m, n: linear((b, m, n), batched),
        )
        return self._builder.add(kernel, result)

    def _convolution(self, name: str, a: list[Any], k: dict[str, Any], node: fx.Node) -> Any:
        value = lower_convolution(self._builder, self._title(a[0]), a, _result(node)[0])
        if a[2] is not None:
            self._names[value] = ("bias",)
        return value

    def _pooling(self, name: str, a: list[Any], k: dict[str, Any], node: fx.Node) -> Any:
        meta = node.meta["val"]
        if isinstance(meta, (tuple, list)):
            if any(user.args[1] != 0 for user in node.users):
                return self._unsupported(node)
            shape = tuple(int(n) for n in meta[0].shape)
            return [lower_pooling(self._builder, name, self._title(a[0]), a, shape), None]
        return lower_pooling(self._builder, name, self._title(a[0]), a, _result(node)[0])


def _as_matrix(left: Value, right: Value) -> tuple[int, int]:
    rows = left.shape[0] if len(left.shape) == 2 else 1
    columns = right.shape[1] if len(right.shape) == 2 else 1
    return rows, columns


def _product(sizes: tuple[int, ...]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product


def _result(node: fx.Node) -> tuple[tuple[int, ...], str]:
    """Shape and type of a node's result."""
    meta = node.meta["val"]
    dtype = c_type_of(meta.dtype)
    if dtype is None:
        raise UnsupportedOperator(f"expected a type that kernels know, got {meta.dtype}")
    return tuple(int(n) for n in meta.shape), dtype


_REDUCTIONS = {
    "sum": "sum", "prod": "prod", "amax": "max", "amin": "min", "any": "any", "all": "all",
    "argmax": "argmax", "argmin": "argmin",
}  # fmt: skip

_Rule = Callable[[_Lowering, str, list[Any], dict[str, Any], fx.Node], Any]

_RULES: dict[str, _Rule] = {
    **dict.fromkeys(_REDUCTIONS, _Lowering._reduction),
    "mean": _Lowering._mean,
    "var": _Lowering._var_mean,
    "var_mean": _Lowering._var_mean,
    "max": _Lowering._extremum,
    "min": _Lowering._extremum,
    "cumsum": _Lowering._scan,
    "cumprod": _Lowering._scan,
    "mm": _Lowering._product,
    "bmm": _Lowering._product,
    "mv": _Lowering._product,
    "dot": _Lowering._product,
    "convolution": _Lowering._convolution,
    **dict.fromkeys(
        (
            "avg_pool1d",
            "avg_pool2d",
            "avg_pool3d",
            "max_pool2d_with_indices",
            "max_pool3d_with_indices",
        ),
        _Lowering._pooling,
    ),
}
