"""Tiled products: out[b, m, n] = sum over k of a[b, m, k] * b[b, k, n].

Matrix products are this, and so are convolutions (as implicit products with the patches of their
input, which are never stored).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from kernelgym.agents.kernels.index import Index, variable
from kernelgym.agents.kernels.kernel import Code, Kernel, Knob, Place, Store, indented
from kernelgym.agents.kernels.values import Buffer, Emitter, Load, Value, record

__all__ = ["ProductKernel"]

_TILES = ((64, 64, 4, 4), (16, 16, 1, 1), (32, 32, 2, 2), (32, 64, 4, 2), (128, 64, 8, 4))
_TILE_NAMES = tuple("x".join(map(str, tile)) for tile in _TILES)


class ProductKernel(Kernel):
    """A batched matrix product through tiles in shared memory, with a register tile per thread.

    Args:
        number: Its position in the plan.
        title: What it computes.
        result: The buffer of the results.
        left: Lazy operand of shape (batch, m, k).
        right: Lazy operand of shape (batch, k, n).
        offset: The offset in the result of the element (batch, m, n).
    """

    family = "product"

    def __init__(
        self,
        number: int,
        title: str,
        result: Buffer,
        left: Value,
        right: Value,
        offset: Callable[[Index, Index, Index], Index],
    ) -> None:
        super().__init__(number, title)
        self.result = result
        self.left, self.right = left, right
        self.batch, self.m, self.k = left.shape
        self.n = right.shape[2]
        self._b, self._m = variable("batch", self.batch), variable("m", self.m)
        self._k, self._n = variable("k", self.k), variable("n", self.n)
        self._offset = offset(self._b, self._m, self._n)
        self.stores.append(Store(self.places()[0], result, Value.of(result)))

    def places(self) -> tuple[Place, ...]:
        """One element of the product a pass."""
        return (Place("element", self.result.numel, self._offset),)

    def results(self, place: Place) -> Mapping[tuple[Buffer, Index], str]:
        """The sum of products."""
        return {(self.result, self._offset): "acc[i][j]"}

    def core_loads(self) -> Iterable[Load]:
        """Both operands' reads."""
        left = record(self.left, (self._b, self._m, self._k))
        return (*left, *record(self.right, (self._b, self._k, self._n)))

    def knobs(self) -> tuple[Knob, ...]:
        """Tile (rows, columns, and rows and columns per thread) and its depth."""
        small = min(self.m, self.n) < 48
        tiles = sorted(_TILE_NAMES, key=lambda t: t != ("32x32x2x2" if small else "64x64x4x4"))
        return (Knob("tile", tuple(tiles)), Knob("depth", (16, 8, 32)))

    def code(self, choice: Mapping[str, int | str]) -> Code:
        """See `Kernel.code`."""
        rows, columns, per_m, per_n = map(int, str(choice["tile"]).split("x"))
        depth = int(choice["depth"])
        across, down = columns // per_n, rows // per_m
        threads = across * down
        tiles_m, tiles_n = math.ceil(self.m / rows), math.ceil(self.n / columns)
        lines = [
            f"__shared__ float left[{depth}][{rows + 1}];   // padded: its columns are written",
            f"__shared__ float right[{depth}][{columns + 1}];",
            f"const index_t batch = blockIdx.x / {tiles_m * tiles_n};",
            f"const index_t first_m = blockIdx.x / {tiles_n} % {tiles_m} * {rows};",
            f"const index_t first_n = blockIdx.x % {tiles_n} * {columns};",
            f"const int tx = threadIdx.x % {across}, ty = threadIdx.x / {across};",
            f"float acc[{per_m}][{per_n}] = {{}};",
            f"for (index_t first_k = 0; first_k < {self.k}; first_k += {depth}) {{",
            *indented(self._fill("left", rows, depth, threads)),
            *indented(self._fill("right", columns, depth, threads)),
            "  __syncthreads();",
            "  #pragma unroll",
            f"  for (int step = 0; step < {depth}; ++step) {{",
            f"    float a[{per_m}], b[{per_n}];",
            f"    for (int i = 0; i < {per_m}; ++i) a[i] = left[step][ty + i * {down}];",
            f"    for (int j = 0; j < {per_n}; ++j) b[j] = right[step][tx + j * {across}];",
            f"    for (int i = 0; i < {per_m}; ++i)",
            f"      for (int j = 0; j < {per_n}; ++j) acc[i][j] += a[i] * b[j];",
            "  }",
            "  __syncthreads();",
            "}",
            "#pragma unroll",
            f"for (int i = 0; i < {per_m}; ++i) {{",
            "  #pragma unroll",
            f"  for (int j = 0; j < {per_n}; ++j) {{",
            f"    const index_t m = first_m + ty + i * {down}, n = first_n + tx + j * {across};",
            f"    if (m < {self.m} && n < {self.n}) {{",
            *indented(self.store_lines(self.places()[0]), 3),
            "    }",
            "  }",
            "}",
        ]
        head = f"__global__ void __launch_bounds__({threads}) {self.name}({self.signature()}) {{"
        comment = (
            f"// {'; '.join(self.titles)}: {self.batch} x ({self.m} x {self.k}) ({self.k} x "
            f"{self.n}), {rows} x {columns} tiles, {per_m} x {per_n} a thread"
        )
        return Code(
            "\n".join([comment, head, *indented(lines), "}"]),
            self.batch * tiles_m * tiles_n,
            threads,
        )

    def _fill(self, side: str, width: int, depth: int, threads: int) -> list[str]:
        """Loads a tile; neighbouring threads take neighbouring elements where memory has them."""
        along = "m" if side == "left" else "n"
        bound = self.m if side == "left" else self.n
        value = self.left if side == "left" else self.right
        indices = (self._b, self._m, self._k) if side == "left" else (self._b, self._k, self._n)
        loads = record(value, indices)
        k_runs = _run(loads, "k") > _run(loads, along)
        if k_runs:
            split = f"const int at = e / {depth}, step = e % {depth};"
        else:
            split = f"const int at = e % {width}, step = e / {width};"
        emitter = Emitter("l" if side == "left" else "r")
        name = emitter.masked("inside", "float", lambda: emitter.element(value, indices), "0.0f")
        return [
            f"for (int e = threadIdx.x; e < {width * depth}; e += {threads}) {{",
            f"  {split}",
            f"  const index_t {along} = first_{along} + at, k = first_k + step;",
            f"  const bool inside = {along} < {bound} && k < {self.k};",
            *indented(emitter.lines),
            f"  {side}[step][at] = {name};",
            "}",
        ]


def _run(loads: Iterable[Load], name: str) -> int:
    """How many steps of a loop variable go through neighbouring elements."""
    runs = [
        digit.mod
        for load in loads
        for digit, coefficient in load.offset.terms
        if digit.name == name and digit.div == 1 and coefficient == 1
    ]
    return max(runs, default=0)
