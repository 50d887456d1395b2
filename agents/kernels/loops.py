"""Kernels in which a thread makes one element: elementwise chains, pooling, direct convolution."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping

from kernelgym.agents.kernels.index import Index, unravel, variable
from kernelgym.agents.kernels.kernel import Code, Kernel, Knob, Place, Store, indented
from kernelgym.agents.kernels.values import C_TYPES, Buffer, Emitter, Load, Recorder, Scope, Value

__all__ = ["COMBINE", "Loop", "PointwiseKernel", "WindowKernel", "combine"]

COMBINE = {
    "sum": ("{a} + {b}", "0"),
    "prod": ("{a} * {b}", "1"),
    "max": ("({b} > {a} || {b} != {b} ? {b} : {a})", "-INFINITY"),  # NaN wins, as in torch
    "min": ("({b} < {a} || {b} != {b} ? {b} : {a})", "INFINITY"),
    "any": ("{a} || {b}", "false"),
    "all": ("{a} && {b}", "true"),
}
"""How two elements become one, and the element that changes nothing."""


def combine(operation: str, a: str, b: str) -> str:
    """The expression that reduces two operands to one."""
    return COMBINE[operation][0].format(a=a, b=b)


class PointwiseKernel(Kernel):
    """Writes lazy values, `width` neighbouring elements a thread.

    Args:
        number: Its position in the plan.
        title: What it computes.
        numel: Elements.
    """

    family = "pointwise"

    def __init__(self, number: int, title: str, numel: int) -> None:
        super().__init__(number, title)
        self.numel = numel

    def places(self) -> tuple[Place, ...]:
        """One element a pass."""
        return (Place("element", self.numel, variable("i", self.numel)),)

    def results(self, place: Place) -> Mapping[tuple[Buffer, Index], str]:
        """None of its own."""
        return {}

    def core_loads(self) -> Iterable[Load]:
        """None of its own."""
        return ()

    def knobs(self) -> tuple[Knob, ...]:
        """Block size, and elements per thread where the count is a multiple."""
        widths = tuple(w for w in (4, 2, 1) if self.numel % w == 0)
        return (Knob("block", (256, 64, 128, 512, 1024)), Knob("width", widths))

    def code(self, choice: Mapping[str, int | str]) -> Code:
        """See `Kernel.code`."""
        threads, width = int(choice["block"]), int(choice["width"])
        place = self.places()[0]
        items = self.numel // width
        head = [
            f"// {'; '.join(self.titles)}: one thread for {width} of {self.numel} elements",
            f"__global__ void __launch_bounds__({threads}) {self.name}({self.signature()}) {{",
        ]
        start = f"static_cast<index_t>(blockIdx.x) * {threads} + threadIdx.x"
        if width == 1 or place.offset == Index():
            body = [
                f"const index_t i = {start};",
                f"if (i >= {self.numel}) return;",
                *self.store_lines(place),
            ]
        else:
            body = self._wide(place, width, items, start)
        text = "\n".join([*head, *indented(body), "}"])
        return Code(text, math.ceil(items / threads), threads)

    def _wide(self, place: Place, width: int, items: int, start: str) -> list[str]:
        """Vector loads and stores of what is contiguous in i, plain ones of the rest."""
        read, _ = self.arguments()
        recorder = Recorder()
        for store in self.stores:
            recorder.element(store.value, store.indices)
        whole = {
            load.buffer
            for load in recorder.loads
            if load.offset == place.offset and not load.mask and load.buffer.dtype == "float"
        }
        lines = [
            f"const index_t item = {start};",
            f"if (item >= {items}) return;",
        ]
        emitter = Emitter()
        for buffer in read:
            if buffer in whole:
                emitter.registers[buffer, place.offset] = f"{buffer.name}_items.lane[k]"
                lines.append(f"Pack{width} {buffer.name}_items;")
                lines.append(
                    f"{buffer.name}_items.vector = "
                    f"reinterpret_cast<const float{width}*>({buffer.name})[item];"
                )
        inner = [f"const index_t i = item * {width} + k;"]
        tail: list[str] = []
        writes: list[str] = []
        for store in self.stores:
            name = emitter.element(store.value, store.indices)
            emitter.registers[store.buffer, place.offset] = name
            out = store.buffer
            if out.dtype == "float":
                lines.append(f"Pack{width} {out.name}_items;")
                writes.append(f"{out.name}_items.lane[k] = {name};")
                tail.append(
                    f"reinterpret_cast<float{width}*>({out.name})[item] = {out.name}_items.vector;"
                )
            else:
                writes.append(f"{out.name}[i] = {name};")
        return [
            *lines,
            "#pragma unroll",
            f"for (int k = 0; k < {width}; ++k) {{",
            *indented([*inner, *emitter.lines, *writes]),
            "}",
            *tail,
        ]


@dataclasses.dataclass(frozen=True)
class Loop:
    """A loop of a window: the name of its variable and how often it runs."""

    name: str
    extent: int


class WindowKernel(Kernel):
    """Each output reduces a small window of the inputs, which one thread walks through.

    Args:
        number: Its position in the plan.
        title: What it computes.
        result: The buffer of the results.
        loops: The window's loops, outermost first.
        operation: A key of `COMBINE`.
        term: Gives the window's element in a scope, from the output's indices and the loops'.
    """

    family = "window"

    def __init__(
        self,
        number: int,
        title: str,
        result: Buffer,
        loops: tuple[Loop, ...],
        operation: str,
        term: Callable[[Scope, tuple[Index, ...], tuple[Index, ...]], str],
    ) -> None:
        super().__init__(number, title)
        self.result = result
        self.loops = loops
        self.operation = operation
        self.term = term
        self.stores.append(Store(self.places()[0], result, Value.of(result)))

    def places(self) -> tuple[Place, ...]:
        """One output a thread."""
        return (Place("element", self.result.numel, variable("i", self.result.numel)),)

    def results(self, place: Place) -> Mapping[tuple[Buffer, Index], str]:
        """The reduced window."""
        return {(self.result, place.offset): "acc"}

    def core_loads(self) -> Iterable[Load]:
        """The window's reads."""
        recorder = Recorder()
        self._term_in(recorder)
        return recorder.loads

    def knobs(self) -> tuple[Knob, ...]:
        """Block size, and how far the innermost loop is unrolled."""
        return (Knob("block", (128, 32, 64, 256, 512)), Knob("unroll", (4, 1, 2, 8)))

    def code(self, choice: Mapping[str, int | str]) -> Code:
        """See `Kernel.code`."""
        threads = int(choice["block"])
        numel, dtype = self.result.numel, self.result.dtype
        emitter = Emitter("w")
        term = self._term_in(emitter)
        body = [*emitter.lines, f"acc = {combine(self.operation, 'acc', term)};"]
        for depth, loop in enumerate(reversed(self.loops)):
            head = f"for (int {loop.name} = 0; {loop.name} < {loop.extent}; ++{loop.name}) {{"
            unroll = [f"#pragma unroll {choice['unroll']}"] if depth == 0 else []
            body = [*unroll, head, *indented(body), "}"]
        lines = [
            f"const index_t i = static_cast<index_t>(blockIdx.x) * {threads} + threadIdx.x;",
            f"if (i >= {numel}) return;",
            f"{C_TYPES[dtype]} acc = {COMBINE[self.operation][1]};",
            *body,
            *self.store_lines(self.places()[0]),
        ]
        head = f"__global__ void __launch_bounds__({threads}) {self.name}({self.signature()}) {{"
        text = "\n".join(
            [f"// {'; '.join(self.titles)}: one thread an output", head, *indented(lines), "}"]
        )
        return Code(text, math.ceil(numel / threads), threads)

    def _term_in(self, scope: Scope) -> str:
        indices = unravel(variable("i", self.result.numel), self.result.shape)
        return self.term(scope, indices, tuple(variable(p.name, p.extent) for p in self.loops))
