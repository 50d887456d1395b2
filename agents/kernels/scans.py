"""Scans: running sums and products along one dimension, one warp or one thread a row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from kernelgym.agents.kernels.index import Index, linear
from kernelgym.agents.kernels.kernel import Code, Kernel, Knob, Place, Store, indented
from kernelgym.agents.kernels.loops import combine
from kernelgym.agents.kernels.rows import Rows
from kernelgym.agents.kernels.values import C_TYPES, Buffer, Emitter, Load, Value, record

__all__ = ["ScanKernel"]


class ScanKernel(Kernel):
    """Inclusive scan of each row.

    Args:
        number: Its position in the plan.
        title: What it computes.
        rows: The rows; one dimension is within a row.
        operation: `"sum"` or `"prod"`.
        value: What is scanned, of the rows' shape.
        result: The buffer of the results, of that shape.
    """

    family = "scan"

    def __init__(
        self, number: int, title: str, rows: Rows, operation: str, value: Value, result: Buffer
    ) -> None:
        super().__init__(number, title)
        self.rows, self.operation, self.value, self.result = rows, operation, value, result
        self.stores.append(Store(self.places()[0], result, Value.of(result)))

    def places(self) -> tuple[Place, ...]:
        """One element a pass."""
        offset = linear(self.rows.indices(), self.rows.shape)
        return (Place("element", self.result.numel, offset),)

    def results(self, place: Place) -> Mapping[tuple[Buffer, Index], str]:
        """The running total."""
        return {(self.result, place.offset): "total"}

    def core_loads(self) -> Iterable[Load]:
        """The scanned elements."""
        return record(self.value, self.rows.indices())

    def knobs(self) -> tuple[Knob, ...]:
        """Who scans a row, and the block size."""
        runs = any(
            digit.name == "r" and digit.div == 1 and coefficient == 1
            for load in self.core_loads()
            for digit, coefficient in load.offset.terms
        )
        teams = ("warp", "thread") if runs and self.rows.length >= 32 else ("thread", "warp")
        return (Knob("team", teams), Knob("block", (128, 32, 64, 256, 512)))

    def code(self, choice: Mapping[str, int | str]) -> Code:
        """See `Kernel.code`."""
        threads, team = int(choice["block"]), str(choice["team"])
        count, length = self.rows.count, self.rows.length
        c_type = C_TYPES[self.result.dtype]
        neutral = "0" if self.operation == "sum" else "1"
        lanes = 32 if team == "warp" else 1
        emitter = Emitter("e")
        item = f"(static_cast<index_t>(blockIdx.x) * {threads} + threadIdx.x)"
        if team == "thread":
            element = emitter.element(self.value, self.rows.indices())
            walk = [
                f"{c_type} total = {neutral};",
                f"for (index_t r = 0; r < {length}; ++r) {{",
                *indented(emitter.lines),
                f"  total = {combine(self.operation, 'total', element)};",
                *indented(self.store_lines(self.places()[0])),
                "}",
            ]
        else:
            element = emitter.masked(
                "inside",
                self.result.dtype,
                lambda: emitter.element(self.value, self.rows.indices()),
                neutral,
            )
            walk = [
                "const int lane = threadIdx.x % 32;",
                f"{c_type} before = {neutral};  // total of the 32-element chunks behind",
                f"for (index_t first = 0; first < {length}; first += 32) {{",
                "  const index_t r = first + lane;",
                f"  const bool inside = r < {length};",
                *indented(emitter.lines),
                f"  {c_type} sum = {element};",
                "  for (int distance = 1; distance < 32; distance *= 2) {",
                f"    const {c_type} left = __shfl_up_sync(0xffffffffu, sum, distance);",
                f"    if (lane >= distance) sum = {combine(self.operation, 'left', 'sum')};",
                "  }",
                f"  const {c_type} total = {combine(self.operation, 'before', 'sum')};",
                "  if (inside) {",
                *indented(self.store_lines(self.places()[0]), 2),
                "  }",
                "  before = __shfl_sync(0xffffffffu, total, 31);",
                "}",
            ]
        lines = [
            f"const index_t row = {item}{' / 32' if lanes == 32 else ''};",
            f"if (row >= {count}) return;",
            *walk,
        ]
        head = f"__global__ void __launch_bounds__({threads}) {self.name}({self.signature()}) {{"
        comment = f"// {'; '.join(self.titles)}: one {team} a row, {count} rows of {length}"
        text = "\n".join([comment, head, *indented(lines), "}"])
        return Code(text, math.ceil(count * lanes / threads), threads)
