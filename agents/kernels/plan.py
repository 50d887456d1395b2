"""A plan: the kernels of one forward pass, and the builder that decides what fuses into which."""

from __future__ import annotations

import dataclasses
import math

from kernelgym.agents.kernels.index import Index, variable
from kernelgym.agents.kernels.kernel import Kernel, Knob
from kernelgym.agents.kernels.loops import PointwiseKernel
from kernelgym.agents.kernels.rows import RowKernel, Rows
from kernelgym.agents.kernels.values import Buffer, Recorder, Value

__all__ = ["Plan", "PlanBuilder"]


@dataclasses.dataclass(frozen=True)
class Plan:
    """One forward pass.

    Attributes:
        name: The name of its host function.
        arguments: Tensors that come from `forward`'s arguments and the module, as they are used.
        kernels: In the order of their launches.
        outputs: What `forward` returns.
        several: Whether it returns a tuple rather than one tensor.
    """

    name: str
    arguments: tuple[Buffer, ...]
    kernels: tuple[Kernel, ...]
    outputs: tuple[Buffer, ...]
    several: bool

    def knobs(self) -> dict[str, Knob]:
        """Every kernel's choices, under `"<kernel>.<knob>"`."""
        return {
            f"{kernel.name}.{knob.name}": knob for kernel in self.kernels for knob in kernel.knobs()
        }


class PlanBuilder:
    """Collects kernels; keeps values lazy as long as it can.

    A value that must be in memory is stored by the last kernel that its elements come from, if it
    can be had there element by element (this is how epilogues fuse), else by a kernel of its own.

    Args:
        prefix: Of the names of buffers that kernels make.
    """

    def __init__(self, prefix: str) -> None:
        self.kernels: list[Kernel] = []
        self._prefix = prefix
        self._producers: dict[Buffer, int] = {}
        self._stored: dict[Value, Buffer] = {}
        self._made = 0

    @property
    def next_number(self) -> int:
        """The number of the kernel that would be added next."""
        return len(self.kernels)

    def argument(self, buffer: Buffer) -> Value:
        """A tensor that exists before the first kernel."""
        value = Value.of(buffer)
        self._stored[value] = buffer
        return value

    def buffer(self, shape: tuple[int, ...], dtype: str) -> Buffer:
        """A new buffer for the kernel that would be added next."""
        made = Buffer(f"{self._prefix}{self._made}", shape, dtype)
        self._made += 1
        self._producers[made] = self.next_number
        return made

    def add(self, kernel: Kernel, result: Buffer) -> Value:
        """Appends a kernel; returns its result."""
        self.kernels.append(kernel)
        value = Value.of(result)
        self._stored[value] = result
        return value

    def producer(self, buffer: Buffer) -> int:
        """The number of the kernel that makes a buffer, -1 for an argument."""
        return self._producers.get(buffer, -1)

    def stored(self, value: Value, title: str) -> Buffer:
        """The buffer that holds a value, whose storing is arranged for if there is none yet."""
        if value in self._stored:
            return self._stored[value]
        kernel = self._last_producer(value)
        buffer = self._attach(kernel, value, title) if kernel is not None else None
        if buffer is None:
            own = PointwiseKernel(self.next_number, title, math.prod(value.shape))
            self.kernels.append(own)
            buffer = self._attach(own, value, "")
            assert buffer is not None, "a kernel of its own can store any value"
        self._stored[value] = buffer
        return buffer

    def settle(self, value: Value, title: str) -> Value:
        """A value that is cheap to read many times: stored, unless it only rearranges memory."""
        recorder = _Work()
        recorder.element(value, _generic(value))
        if recorder.operations == 0 and len(recorder.loads) == 1:
            return value
        return Value.of(self.stored(value, title))

    def prefer_epilogue(self, value: Value, title: str) -> Value:
        """Stores a value if an earlier kernel can do so on its way; else leaves it lazy."""
        if value in self._stored:
            return value
        recorder = _Work()
        recorder.element(value, _generic(value))
        kernel = self._last_producer(value)
        if recorder.operations == 0 or kernel is None or isinstance(kernel, RowKernel):
            return value
        buffer = self._attach(kernel, value, title)
        if buffer is None:
            return value
        self._stored[value] = buffer
        return Value.of(buffer)

    def reduce(self, operation: str, value: Value, dims: tuple[int, ...], title: str) -> Value:
        """Reduces dimensions to size 1, in the row kernel of an earlier reduction where possible.

        Args:
            operation: See `kernelgym.agents.kernels.rows.Reduction`.
            value: What is reduced.
            dims: Which dimensions, ascending.
            title: What it is, in a word.
        """
        rows = Rows(value.shape, dims)
        kept = tuple(1 if d in dims else n for d, n in enumerate(value.shape))
        last = self._last_producer(value)
        candidates = [k for k in self.kernels if isinstance(k, RowKernel) and k.rows == rows]
        for kernel in reversed(candidates):
            if last is not None and last.number > kernel.number:
                break
            result = self._join(kernel, operation, value, kept)
            if result is not None:
                kernel.titles.append(title)
                return self._reduced(result)
        value = self.prefer_epilogue(value, title)
        fresh = RowKernel(self.next_number, title, rows)
        self.kernels.append(fresh)
        result = self._join(fresh, operation, value, kept)
        assert result is not None, "a row kernel of its own can reduce any value"
        return self._reduced(result)

    def plan(
        self,
        name: str,
        arguments: tuple[Buffer, ...],
        outputs: tuple[Buffer, ...],
        several: bool,
    ) -> Plan:
        """The plan, without what nobody reads."""
        wanted = set(outputs)
        kept: list[Kernel] = []
        for kernel in reversed(self.kernels):
            kernel.prune(wanted.__contains__)
            if kernel.stores:
                kept.append(kernel)
                wanted.update(kernel.arguments()[0])
        used = tuple(b for b in arguments if b in wanted)
        return Plan(name, used, tuple(reversed(kept)), outputs, several)

    def _attach(self, kernel: Kernel, value: Value, title: str) -> Buffer | None:
        def make(value: Value) -> Buffer:
            made = self.buffer(value.shape, value.dtype)
            self._producers[made] = kernel.number
            return made

        buffer = kernel.attach(value, self.producer, make)
        if buffer is not None and title and title not in kernel.titles:
            kernel.titles.append(title)
        return buffer

    def _join(
        self, kernel: RowKernel, operation: str, value: Value, shape: tuple[int, ...]
    ) -> Buffer | None:
        def make(dtype: str) -> Buffer:
            made = self.buffer(shape, dtype)
            self._producers[made] = kernel.number
            return made

        return kernel.join(operation, value, self.producer, make)

    def _reduced(self, result: Buffer) -> Value:
        value = Value.of(result)
        self._stored[value] = result
        return value

    def _last_producer(self, value: Value) -> Kernel | None:
        recorder = Recorder()
        recorder.element(value, _generic(value))
        number = max((self.producer(load.buffer) for load in recorder.loads), default=-1)
        return self.kernels[number] if number >= 0 else None


class _Work(Recorder):
    """Counts what is computed besides reading."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0

    def bind(self, dtype: str, expression: str) -> str:
        self.operations += 1
        return super().bind(dtype, expression)


def _generic(value: Value) -> tuple[Index, ...]:
    return tuple(variable(f"d{d}", n) for d, n in enumerate(value.shape))
