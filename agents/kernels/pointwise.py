"""Elementwise ATen operators as C++ expressions.

An entry takes C++ operands of the result's type (of the operands' common type for comparisons) and
Python keyword arguments, and returns an expression.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from kernelgym.agents.kernels.values import C_TYPES

__all__ = ["BINARY", "COMPARISONS", "UNARY", "c_type_of", "cast", "literal"]

_DTYPES = {
    torch.float32: "float",
    torch.float64: "double",
    torch.int64: "int64",
    torch.int32: "int32",
    torch.bool: "bool",
}


def c_type_of(dtype: torch.dtype) -> str | None:
    """The key of `C_TYPES` for a torch dtype, or None where there is no such type."""
    return _DTYPES.get(dtype)


def literal(value: Any, dtype: str) -> str:
    """A Python number as a C++ literal of a type."""
    if dtype == "bool":
        return "true" if value else "false"
    if dtype in ("int64", "int32"):
        return str(int(value))
    number = float(value)
    suffix = "f" if dtype == "float" else ""
    if math.isnan(number):
        return "NAN"
    if math.isinf(number):
        return "INFINITY" if number > 0 else "-INFINITY"
    text = repr(number)
    text = text if "." in text or "e" in text else f"{text}.0"
    return f"{text}{suffix}" if number >= 0 else f"({text}{suffix})"


def cast(operand: str, have: str, want: str) -> str:
    """An operand converted to a type."""
    if have == want:
        return operand
    if want == "bool":
        return f"({operand} != 0)"
    return f"static_cast<{C_TYPES[want]}>({operand})"


def _gelu(x: str, approximate: str = "none") -> str:
    if approximate == "tanh":
        return f"0.5f * {x} * (1.0f + tanhf(0.7978845608f * ({x} + 0.044715f * {x} * {x} * {x})))"
    return f"0.5f * {x} * (1.0f + erff({x} * 0.7071067812f))"


def _power(x: str, y: str) -> str:
    if y in ("2.0f", "2"):
        return f"{x} * {x}"
    if y == "3.0f":
        return f"{x} * {x} * {x}"
    if y == "0.5f":
        return f"sqrtf({x})"
    return f"powf({x}, {y})"


def _function(name: str) -> Callable[[str], str]:
    return lambda x: f"{name}({x})"


UNARY: dict[str, Callable[..., str]] = {
    "abs": lambda x: f"({x} < 0 ? -{x} : {x})",
    "alias": lambda x: x,
    "bitwise_not": lambda x: f"!{x}",
    "ceil": _function("ceilf"),
    "clone": lambda x: x,
    "cos": _function("cosf"),
    "detach": lambda x: x,
    "erf": _function("erff"),
    "exp": _function("expf"),
    "expm1": _function("expm1f"),
    "floor": _function("floorf"),
    "gelu": _gelu,
    "isinf": _function("isinf"),
    "isnan": _function("isnan"),
    "lift_fresh_copy": lambda x: x,
    "log": _function("logf"),
    "log1p": _function("log1pf"),
    "log2": _function("log2f"),
    "logical_not": lambda x: f"!{x}",
    "neg": lambda x: f"-{x}",
    "reciprocal": lambda x: f"1.0f / {x}",
    "relu": lambda x: f"({x} < 0 ? 0 : {x})",  # keeps NaN, as torch does
    "round": _function("rintf"),
    "rsqrt": _function("rsqrtf"),
    "sigmoid": lambda x: f"1.0f / (1.0f + expf(-{x}))",
    "sign": lambda x: f"static_cast<float>(({x} > 0) - ({x} < 0))",
    "sin": _function("sinf"),
    "sqrt": _function("sqrtf"),
    "tan": _function("tanf"),
    "tanh": _function("tanhf"),
}

BINARY: dict[str, Callable[[str, str], str]] = {
    "add": lambda x, y: f"{x} + {y}",
    "atan2": lambda x, y: f"atan2f({x}, {y})",
    "bitwise_and": lambda x, y: f"{x} & {y}",
    "bitwise_or": lambda x, y: f"{x} | {y}",
    "div": lambda x, y: f"{x} / {y}",
    "fmod": lambda x, y: f"fmodf({x}, {y})",
    "logical_and": lambda x, y: f"{x} && {y}",
    "logical_or": lambda x, y: f"{x} || {y}",
    "maximum": lambda x, y: f"({x} > {y} || {x} != {x} ? {x} : {y})",
    "minimum": lambda x, y: f"({x} < {y} || {x} != {x} ? {x} : {y})",
    "mul": lambda x, y: f"{x} * {y}",
    "pow": _power,
    "sub": lambda x, y: f"{x} - {y}",
}

COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
