"""Row kernels: any number of reductions over the same rows, and what is elementwise in between.

A tensor is seen as rows (the dimensions that are kept) of elements (those that are reduced). One
kernel makes several passes over a row: softmax, every norm, variance, log-sum-exp and losses are
chains of reductions with elementwise work between them, and become one kernel each.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping

from kernelgym.agents.kernels.index import Index, linear, unravel, variable
from kernelgym.agents.kernels.kernel import Code, Kernel, Knob, Place, Store, indented
from kernelgym.agents.kernels.loops import COMBINE
from kernelgym.agents.kernels.values import (
    C_TYPES,
    Buffer,
    Emitter,
    Load,
    Value,
    record,
)

__all__ = ["ARG_OPERATIONS", "Reduction", "RowKernel", "Rows"]

ARG_OPERATIONS = ("argmax", "argmin")
"""Reductions to the position of an element, the first of several equal ones."""

_FUNCTORS = {
    "sum": "Sum", "prod": "Product", "max": "Max", "min": "Min", "any": "Or", "all": "And",
    "argmax": "First<Max>", "argmin": "First<Min>",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Rows:
    """How a tensor falls into rows.

    Attributes:
        shape: Its sizes.
        reduced: The dimensions within a row, ascending.
    """

    shape: tuple[int, ...]
    reduced: tuple[int, ...]

    @property
    def kept_shape(self) -> tuple[int, ...]:
        """Sizes of the other dimensions."""
        return tuple(n for d, n in enumerate(self.shape) if d not in self.reduced)

    @property
    def count(self) -> int:
        """Number of rows."""
        return math.prod(self.kept_shape)

    @property
    def length(self) -> int:
        """Elements in a row."""
        return math.prod(self.shape[d] for d in self.reduced)

    def indices(self) -> tuple[Index, ...]:
        """The indices of element `r` of row `row`."""
        kept = iter(unravel(variable("row", self.count), self.kept_shape))
        inner = unravel(variable("r", self.length), tuple(self.shape[d] for d in self.reduced))
        within = iter(inner)
        return tuple(
            next(within) if d in self.reduced else next(kept) for d in range(len(self.shape))
        )


@dataclasses.dataclass(frozen=True)
class Reduction:
    """One reduction of a row kernel.

    Attributes:
        operation: A key of `COMBINE`, or one of `ARG_OPERATIONS`.
        value: What is reduced, of the kernel's shape.
        result: One element a row.
        level: The pass in which it happens, from 0.
    """

    operation: str
    value: Value
    result: Buffer
    level: int


class RowKernel(Kernel):
    """Reductions over rows, in passes, then stores per row and per element.

    Args:
        number: Its position in the plan.
        title: What it computes.
        rows: The rows.
    """

    family = "rows"

    def __init__(self, number: int, title: str, rows: Rows) -> None:
        super().__init__(number, title)
        self.rows = rows
        self.reductions: list[Reduction] = []

    def join(
        self,
        operation: str,
        value: Value,
        producer: Callable[[Buffer], int],
        make: Callable[[str], Buffer],
    ) -> Buffer | None:
        """Adds a reduction if all that it reads is at hand.

        Args:
            operation: See `Reduction`.
            value: What is reduced, of the kernel's shape.
            producer: The number of the kernel that makes a buffer, -1 for an argument.
            make: Makes the result's buffer, given its type.

        Returns:
            The buffer of the result, or None.
        """
        ours = {(r.result, self._row_offset()): r.level for r in self.reductions}
        level = 0
        for load in record(value, self.rows.indices()):
            known = ours.get((load.buffer, load.offset))
            if known is not None:
                level = max(level, known + 1)
            elif producer(load.buffer) >= self.number:
                return None
        dtype = "int64" if operation in ARG_OPERATIONS else value.dtype
        result = make(dtype)
        self.reductions.append(Reduction(operation, value, result, level))
        self.stores.append(Store(self._row_place(), result, Value.of(result)))
        return result

    def places(self) -> tuple[Place, ...]:
        """Once a row, and once an element."""
        numel = self.rows.count * self.rows.length
        offset = linear(self.rows.indices(), self.rows.shape)
        return (self._row_place(), Place("element", numel, offset))

    def results(self, place: Place) -> Mapping[tuple[Buffer, Index], str]:
        """The reductions, and at an element also what was computed for its row."""
        return {(r.result, self._row_offset()): f"red{k}" for k, r in enumerate(self.reductions)}

    def core_loads(self) -> Iterable[Load]:
        """The reductions' reads from memory."""
        ours = {r.result for r in self.reductions}
        return [
            load
            for reduction in self.reductions
            for load in record(reduction.value, self.rows.indices())
            if load.buffer not in ours
        ]

    def knobs(self) -> tuple[Knob, ...]:
        """Who works on a row, and the block size."""
        length, count = self.rows.length, self.rows.count
        if not self._contiguous_rows() and count >= 32:
            first = "thread"
        else:
            first = "warp" if length <= 1024 and count >= 8 else "block"
        teams = (first, *(team for team in ("thread", "warp", "block") if team != first))
        lanes = {"thread": 1, "warp": 32}.get(first)
        if lanes is None:
            block = 256 if length > 512 else 128
        else:  # enough blocks to occupy several multiprocessors
            block = next((n for n in (256, 128) if count * lanes >= 16 * n), 64)
        return (
            Knob("team", teams),
            Knob("block", (block, *(n for n in (64, 128, 256, 512, 1024) if n != block))),
        )

    def code(self, choice: Mapping[str, int | str]) -> Code:
        """See `Kernel.code`."""
        threads, team = int(choice["block"]), str(choice["team"])
        count = self.rows.count
        lanes, lane = {
            "thread": (1, "0"),
            "warp": (32, "threadIdx.x % 32"),
            "block": (threads, "threadIdx.x"),
        }[team]
        index = (
            "blockIdx.x"
            if team == "block"
            else (
                f"(static_cast<index_t>(blockIdx.x) * {threads} + threadIdx.x)"
                + (" / 32" if team == "warp" else "")
            )
        )
        lines = [f"const index_t row = {index};"]
        if team != "block":
            lines.append(f"if (row >= {count}) return;")
        if lanes > 1:
            lines.append(f"const int lane = {lane};")
        for level in sorted({r.level for r in self.reductions}):
            lines += self._pass(level, team, lanes)
        lines += self._row_stores(lanes)
        lines += self._element_stores(lanes)
        head = f"__global__ void __launch_bounds__({threads}) {self.name}({self.signature()}) {{"
        comment = (
            f"// {'; '.join(self.titles)}: one {team} a row, "
            f"{count} rows of {self.rows.length} elements"
        )
        text = "\n".join([comment, head, *indented(lines), "}"])
        return Code(text, math.ceil(count * lanes / threads), threads)

    def _pass(self, level: int, team: str, lanes: int) -> list[str]:
        """One walk along the row, for the reductions of a level."""
        now = [(k, r) for k, r in enumerate(self.reductions) if r.level == level]
        known = {
            (r.result, self._row_offset()): f"red{k}"
            for k, r in enumerate(self.reductions)
            if r.level < level
        }
        emitter = Emitter(f"p{level}_", known)
        declared, updates, combined = [], [], []
        for k, reduction in now:
            element = emitter.element(reduction.value, self.rows.indices())
            operation, dtype = reduction.operation, reduction.value.dtype
            functor = _FUNCTORS[operation]
            if operation in ARG_OPERATIONS:
                start = "-INFINITY" if operation == "argmax" else "INFINITY"
                declared.append(f"Candidate best{k} = {{{start}, INT64_MAX}};")
                updates.append(
                    f"best{k} = {functor}()(best{k}, Candidate{{static_cast<float>({element}), r}});"
                )
                combined.append(
                    f"const int64_t red{k} = {_reduced(team, lanes, f'best{k}', functor)}.position;"
                )
                continue
            c_type = C_TYPES[dtype]
            declared.append(f"{c_type} acc{k} = {COMBINE[operation][1]};")
            updates.append(f"acc{k} = {functor}()(acc{k}, {element});")
            combined.append(f"const {c_type} red{k} = {_reduced(team, lanes, f'acc{k}', functor)};")
        return [
            *declared,
            *self._walk(lanes, [*emitter.lines, *updates]),
            *combined,
        ]

    def _walk(self, lanes: int, body: list[str]) -> list[str]:
        start, step = ("lane", f"r += {lanes}") if lanes > 1 else ("0", "++r")
        head = f"for (index_t r = {start}; r < {self.rows.length}; {step}) {{"
        return [head, *indented(body), "}"]

    def _row_stores(self, lanes: int) -> list[str]:
        place = self._row_place()
        return self.store_lines(place, "lane == 0" if lanes > 1 else "", "s")

    def _element_stores(self, lanes: int) -> list[str]:
        body = self.store_lines(self.places()[1])
        return self._walk(lanes, body) if body else []

    def _row_offset(self) -> Index:
        return variable("row", self.rows.count)

    def _row_place(self) -> Place:
        return Place("row", self.rows.count, self._row_offset())

    def _contiguous_rows(self) -> bool:
        """Whether neighbouring elements of a row are neighbours in memory."""
        return any(
            digit.name == "r" and digit.div == 1 and coefficient == 1
            for load in self.core_loads()
            for digit, coefficient in load.offset.terms
        )


def _reduced(team: str, lanes: int, operand: str, functor: str) -> str:
    """What every lane of the team gets from all lanes' operands."""
    if team == "thread":
        return operand
    if team == "warp":
        return f"warp_reduce({operand}, {functor}())"
    return f"block_reduce<{lanes}>({operand}, {functor}())"
