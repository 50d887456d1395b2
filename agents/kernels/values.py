"""Lazy tensors: a value knows how to compute one element, and costs nothing until it is asked.

An element is computed in a `Scope`. `Emitter` writes C++ statements; `Recorder` only notes which
elements of which buffers would be read, which is how the lowering decides what can be fused.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable
from typing import TypeAlias

from kernelgym.agents.kernels.index import Index, linear

__all__ = ["C_TYPES", "Buffer", "Emitter", "Load", "Recorder", "Scope", "Value", "record"]

C_TYPES = {"float": "float", "double": "double", "int64": "int64_t", "int32": "int", "bool": "bool"}
"""Element types and their names in C++."""

Shape: TypeAlias = "tuple[int, ...]"


@dataclasses.dataclass(frozen=True)
class Buffer:
    """A contiguous tensor in memory.

    Attributes:
        name: Its name in the generated code.
        shape: Sizes.
        dtype: A key of `C_TYPES`.
        source: The Python expression in `forward` that gives it (`"x"`, `"self.conv.weight"`), or
            `""` for one that a kernel makes.
    """

    name: str
    shape: Shape
    dtype: str
    source: str = ""

    @property
    def numel(self) -> int:
        """Number of elements."""
        product = 1
        for size in self.shape:
            product *= size
        return product


@dataclasses.dataclass(frozen=True)
class Load:
    """A read of one element; `mask` is the condition under which it happens, or `""`."""

    buffer: Buffer
    offset: Index
    mask: str


class Scope(abc.ABC):
    """Where elements are computed. What was computed once in a scope is not computed again."""

    def __init__(self) -> None:
        self._mask = ""
        self._memo: dict[object, str] = {}

    @abc.abstractmethod
    def bind(self, dtype: str, expression: str) -> str:
        """Gives an expression a name; returns the name."""

    @abc.abstractmethod
    def load(self, buffer: Buffer, offset: Index) -> str:
        """Reads an element of a buffer, under the current mask; returns a name."""

    def element(self, value: Value, indices: tuple[Index, ...]) -> str:
        """The name of an element of a value."""
        key = (value, indices, self._mask)
        if key not in self._memo:
            self._memo[key] = value.at(self, indices)
        return self._memo[key]

    def masked(self, condition: str, dtype: str, compute: Callable[[], str], other: str) -> str:
        """`condition ? compute() : other`, in which what is not wanted is not read either."""
        outer = self._mask
        self._mask = f"{outer} && {condition}" if outer else condition
        mask = self._mask
        inner = compute()
        self._mask = outer
        return self.select(dtype, condition, mask, inner, other)

    def select(self, dtype: str, condition: str, mask: str, inner: str, other: str) -> str:
        """`condition ? inner : other`, of an `inner` that was computed under a mask."""
        return self.bind(dtype, f"{condition} ? {inner} : {other}")

    def number(self, index: Index) -> str:
        """An index as a C++ operand."""
        text = index.text()
        return text if text.isidentifier() or text.isdigit() else f"({text})"


@dataclasses.dataclass(frozen=True, eq=False)
class Value:
    """A lazy tensor.

    Attributes:
        shape: Sizes.
        dtype: A key of `C_TYPES`.
        at: Computes the element at the given indices in a scope; returns its name there.
    """

    shape: Shape
    dtype: str
    at: Callable[[Scope, tuple[Index, ...]], str]

    @classmethod
    def of(cls, buffer: Buffer) -> Value:
        """A buffer's elements."""
        shape = buffer.shape
        return cls(shape, buffer.dtype, lambda s, i: s.load(buffer, linear(i, shape)))


class Recorder(Scope):
    """Notes reads; computes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: dict[Load, None] = {}

    def bind(self, dtype: str, expression: str) -> str:
        """See `Scope.bind`."""
        return "0"

    def load(self, buffer: Buffer, offset: Index) -> str:
        """See `Scope.load`."""
        self.loads[Load(buffer, offset, self._mask)] = None
        return "0"


class Emitter(Scope):
    """Writes C++ statements.

    Args:
        prefix: Of the names that it gives.
        registers: Elements that are at hand already: (buffer, offset) → expression.
    """

    def __init__(
        self, prefix: str = "v", registers: dict[tuple[Buffer, Index], str] | None = None
    ) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.registers = dict(registers or {})
        self._expressions: dict[str, str] = {}
        self._prefix = prefix
        self._count = 0

    def bind(self, dtype: str, expression: str) -> str:
        """See `Scope.bind`."""
        key = (dtype, expression)
        if key not in self._memo:
            name = f"{self._prefix}{self._count}"
            self._count += 1
            self.lines.append(f"const {C_TYPES[dtype]} {name} = {expression};")
            self._memo[key] = name
            self._expressions[name] = expression
        return self._memo[key]

    def select(self, dtype: str, condition: str, mask: str, inner: str, other: str) -> str:
        """See `Scope.select`; a masked read gives 0 by itself."""
        expression = self._expressions.get(inner, "")
        if other in ("0", "0.0f") and expression.startswith(f"({mask}) ? "):
            return inner
        return super().select(dtype, condition, mask, inner, other)

    def load(self, buffer: Buffer, offset: Index) -> str:
        """See `Scope.load`."""
        if (buffer, offset) in self.registers:
            return self.registers[buffer, offset]
        read = f"{buffer.name}[{offset.text()}]"
        zero = "false" if buffer.dtype == "bool" else "0"
        if self._mask:
            read = f"({self._mask}) ? {read} : {zero}"
        return self.bind(buffer.dtype, read)


def record(value: Value, indices: tuple[Index, ...]) -> tuple[Load, ...]:
    """The reads behind one element."""
    recorder = Recorder()
    recorder.element(value, indices)
    return tuple(recorder.loads)
