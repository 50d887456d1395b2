"""Tiled products: out[b, m, n] = sum over k of a[b, m, k] * b[b, k, n].

Matrix products are this, and so are convolutions (as implicit products with the patches of their
input, which are never stored).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping

from kernelgym.agents.kernels.index import Index, variable
from kernelgym.agents.kernels.kernel import Code, Kernel, Knob, Place, Store, indented
from kernelgym.agents.kernels.values import Buffer, Emitter, Load, Value, record

__all__ = ["ProductKernel"]

_TILES = (
    (16, 16, 1, 1),
    (32, 32, 2, 2),
    (32, 32, 4, 4),
    (64, 64, 4, 4),
    (64, 64, 8, 8),
    (128, 64, 8, 8),
    (128, 128, 8, 8),
)
_TILE_NAMES = tuple("x".join(map(str, tile)) for tile in _TILES)


@dataclasses.dataclass(frozen=True)
class _Side:
    """How the threads of a block share one side of a tile.

    Attributes:
        name: `"left"` or `"right"`, its array in shared memory.
        along: Its index, `"m"` or `"n"`.
        width: Elements of the tile.
        threads: Threads along it.
        each: Elements a thread.
        lane: The thread's position along it.
        grouped: Whether a thread's elements stand in groups of four neighbours, read as one.
    """

    name: str
    along: str
    width: int
    threads: int
    each: int
    lane: str
    grouped: bool

    @property
    def pitch(self) -> int:
        """Floats from one row of the array to the next: padded, for its columns are written."""
        return self.width + (4 if self.grouped else 1)

    def place(self, item: str) -> str:
        """Where in the tile a thread's element stands."""
        if self.grouped:
            return f"{item} / 4 * {self.threads * 4} + {self.lane} * 4 + {item} % 4"
        return f"{self.lane} + {item} * {self.threads}"

    def read(self, target: str) -> list[str]:
        """Statements that read the thread's elements of a step into registers."""
        if not self.grouped:
            place = self.place("i")
            return [
                f"for (int i = 0; i < {self.each}; ++i) {target}[i] = {self.name}[step][{place}];"
            ]
        start = f"{self.lane} * 4 + g * {self.threads * 4}"
        return [
            f"for (int g = 0; g < {self.each // 4}; ++g)",
            f"  reinterpret_cast<float4*>({target})[g] =",
            f"      *reinterpret_cast<const float4*>(&{self.name}[step][{start}]);",
        ]


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
        first = "32x32x4x4" if min(self.m, self.n) < 48 else "64x64x8x8"
        tiles = sorted(_TILE_NAMES, key=lambda tile: tile != first)
        return (Knob("tile", tuple(tiles)), Knob("depth", (16, 8, 32)))

    def code(self, choice: Mapping[str, int | str]) -> Code:
        """See `Kernel.code`."""
        rows, columns, per_m, per_n = map(int, str(choice["tile"]).split("x"))
        depth = int(choice["depth"])
        across, down = columns // per_n, rows // per_m
        wide = per_n % 4 == 0 and self._stores_in_fours()
        left = _Side("left", "m", rows, down, per_m, "ty", per_m % 4 == 0)
        right = _Side("right", "n", columns, across, per_n, "tx", per_n % 4 == 0)
        threads = across * down
        tiles_m, tiles_n = math.ceil(self.m / rows), math.ceil(self.n / columns)
        lines = [
            f"__shared__ __align__(16) float left[{depth}][{left.pitch}];",
            f"__shared__ __align__(16) float right[{depth}][{right.pitch}];",
            f"const index_t batch = blockIdx.x / {tiles_m * tiles_n};",
            f"const index_t first_m = blockIdx.x / {tiles_n} % {tiles_m} * {rows};",
            f"const index_t first_n = blockIdx.x % {tiles_n} * {columns};",
            f"const int tx = threadIdx.x % {across}, ty = threadIdx.x / {across};",
            f"float acc[{per_m}][{per_n}] = {{}};",
            f"for (index_t first_k = 0; first_k < {self.k}; first_k += {depth}) {{",
            *indented(self._fill(left, self.left, depth, threads)),
            *indented(self._fill(right, self.right, depth, threads)),
            "  __syncthreads();",
            "  #pragma unroll",
            f"  for (int step = 0; step < {depth}; ++step) {{",
            f"    __align__(16) float a[{per_m}], b[{per_n}];",
            *indented(left.read("a"), 2),
            *indented(right.read("b"), 2),
            "    #pragma unroll",
            f"    for (int i = 0; i < {per_m}; ++i)",
            f"      for (int j = 0; j < {per_n}; ++j) acc[i][j] += a[i] * b[j];",
            "  }",
            "  __syncthreads();",
            "}",
            "#pragma unroll",
            f"for (int i = 0; i < {per_m}; ++i) {{",
            f"  const index_t m = first_m + {left.place('i')};",
            *indented(self._write_in_fours(right) if wide else self._write(right)),
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

    def _write(self, right: _Side) -> list[str]:
        """Writes a row of the thread's results, one by one."""
        return [
            "#pragma unroll",
            f"for (int j = 0; j < {right.each}; ++j) {{",
            f"  const index_t n = first_n + {right.place('j')};",
            f"  if (m < {self.m} && n < {self.n}) {{",
            *indented(self.store_lines(self.places()[0]), 2),
            "  }",
            "}",
        ]

    def _write_in_fours(self, right: _Side) -> list[str]:
        """Writes a row of the thread's results, four neighbours at a time."""
        place = self.places()[0]
        outs = [store.buffer.name for store in self.stores]
        inner = self.store_lines(
            place, write=lambda out, _, value: f"{out}_items.lane[x] = {value};"
        )
        return [
            "#pragma unroll",
            f"for (int group = 0; group < {right.each // 4}; ++group) {{",
            f"  const index_t start = first_n + tx * 4 + group * {right.threads * 4};",
            f"  if (m < {self.m} && start < {self.n}) {{",
            *(f"    Pack4 {out}_items;" for out in outs),
            "    #pragma unroll",
            "    for (int x = 0; x < 4; ++x) {",
            "      const int j = group * 4 + x;",
            "      const index_t n = start + x;",
            *indented(inner, 3),
            "    }",
            "    const index_t n = start;",
            *(
                f"    *reinterpret_cast<float4*>({out} + {place.offset.text()}) = "
                f"{out}_items.vector;"
                for out in outs
            ),
            "  }",
            "}",
        ]

    def _stores_in_fours(self) -> bool:
        """Whether four neighbours in n from a multiple of four on are so in memory, aligned."""
        along = [
            digit.mod % 4 == 0
            for digit, coefficient in self._offset.terms
            if digit.name == "n" and digit.div == 1 and coefficient == 1
        ]
        others = [coefficient for _, coefficient in self._offset.terms if coefficient != 1]
        return (
            self.n % 4 == 0
            and along == [True]
            and len(others) == len(self._offset.terms) - 1
            and all(coefficient % 4 == 0 for coefficient in others)
            and all(store.buffer.dtype == "float" for store in self.stores)
        )

    def _fill(self, side: _Side, value: Value, depth: int, threads: int) -> list[str]:
        """Loads a tile; neighbouring threads take neighbouring elements where memory has them."""
        along, width = side.along, side.width
        left = side.name == "left"
        bound = self.m if left else self.n
        indices = (self._b, self._m, self._k) if left else (self._b, self._k, self._n)
        loads = record(value, indices)
        k_runs = _run(loads, "k") > _run(loads, along)
        if k_runs:
            split = f"const int at = e / {depth}, step = e % {depth};"
        else:
            split = f"const int at = e % {width}, step = e / {width};"
        emitter = Emitter("l" if left else "r")
        name = emitter.masked("inside", "float", lambda: emitter.element(value, indices), "0.0f")
        return [
            f"for (int e = threadIdx.x; e < {width * depth}; e += {threads}) {{",
            f"  {split}",
            f"  const index_t {along} = first_{along} + at, k = first_k + step;",
            f"  const bool inside = {along} < {bound} && k < {self.k};",
            *indented(emitter.lines),
            f"  {side.name}[step][at] = {name};",
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
