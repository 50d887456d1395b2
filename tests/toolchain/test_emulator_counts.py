"""Counted requests, sectors, conflicts and bytes equal those derived by hand.

A warp is 32 threads; a sector 32 bytes, 8 floats; shared memory has 32 banks of 4 bytes.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest

from kernelgym.toolchain.emulator import Variant

# Every count that is not named is expected to be 0, but for these, which are checked apart.
_SIZES = ("accesses", "blocks", "warps", "threads")


def traffic(prefix: str, requests: int, sectors: int, size: int) -> dict[str, int]:
    return {
        f"{prefix}_requests": requests,
        f"{prefix}_sectors": sectors,
        f"{prefix}_bytes": size,
    }


def shared(prefix: str, requests: int, size: int, *, wavefronts: int = 0) -> dict[str, int]:
    """Shared traffic; `wavefronts` where it is more than one a request."""
    return {
        f"shared_{prefix}_requests": requests,
        f"shared_{prefix}_wavefronts": wavefronts or requests,
        f"shared_{prefix}_bytes": size,
    }


def dram(read: int, write: int) -> dict[str, int]:
    return {"dram_read_bytes": read, "dram_write_bytes": write}


# 32 warps store 32 neighbouring floats each: 128 bytes are 4 sectors.
STORES_1024 = traffic("global_store", 32, 128, 4096)

EXPECTED: dict[str, dict[str, int]] = {
    # Loads like the stores.
    "coalesced": {**traffic("global_load", 32, 128, 4096), **STORES_1024, **dram(4096, 4096)},
    # 8 floats apart, each lane has a sector of its own: 32 a request, and all 1024 come from DRAM.
    "strided": {**traffic("global_load", 32, 1024, 4096), **STORES_1024, **dram(32768, 4096)},
    # 32 lanes x 16 bytes = 512 bytes = 16 sectors a request.
    "vectors": {
        **traffic("global_load", 32, 512, 16384),
        **traffic("global_store", 32, 512, 16384),
        **dram(16384, 16384),
    },
    # Bytes 4 to 132 of a 128-byte line touch 5 sectors. Bytes 4 to 4100 in all: 129 sectors.
    "misaligned": {
        **traffic("global_load", 32, 160, 4096),
        **STORES_1024,
        **dram(129 * 32, 4096),
    },
    # One sector for the whole warp, and one in all.
    "broadcast": {**traffic("global_load", 32, 32, 4096), **STORES_1024, **dram(32, 4096)},
    # 31 whole warps and 8 lanes of the last: still 32 requests, 4000 bytes are 125 sectors.
    "tail": {
        **traffic("global_load", 32, 125, 4000),
        **traffic("global_store", 32, 125, 4000),
        **dram(4000, 4000),
        "divergent_warps": 1,
    },
    # Rows are stored without conflict; a column of 32 words lies in one bank: 32 wavefronts, 31 of
    # them extra, in each of 32 requests.
    "transpose": {
        **traffic("global_load", 32, 128, 4096),
        **STORES_1024,
        **shared("store", 32, 4096),
        **shared("load", 32, 4096, wavefronts=1024),
        "shared_load_conflicts": 992,
        **dram(4096, 4096),
        "barriers": 1,
    },
    # Columns of rows of 33 words: 32 different banks.
    "transpose_padded": {
        **traffic("global_load", 32, 128, 4096),
        **STORES_1024,
        **shared("store", 32, 4096),
        **shared("load", 32, 4096),
        **dram(4096, 4096),
        "barriers": 1,
    },
    # 8 warps store 256 words. The steps 128, 64, 32, 16, 8, 4, 2, 1 keep 4, 2 and six times 1 warp
    # busy: 12 warps with 255 lanes, two loads and a store each. Then thread 0 loads and stores
    # one. In the steps below 32 warp 0 diverges. A barrier before and after each of 8 steps.
    "reduction": {
        **traffic("global_load", 8, 32, 1024),
        **traffic("global_store", 1, 1, 4),
        **shared("store", 8 + 12, 4 * (256 + 255)),
        **shared("load", 2 * 12 + 1, 4 * (2 * 255 + 1)),
        **dram(1024, 32),
        "barriers": 9,
        "divergent_warps": 1,
    },
    # 8 warps, one sector each; 31 lanes wait for the first in each.
    "atomics": {
        "global_atomic_requests": 8,
        "global_atomic_sectors": 8,
        "global_atomics": 256,
        "atomic_serialisations": 8 * 31,
        **dram(32, 32),
    },
    # Warp 0 clears 32 bins and adds them to global memory (128 bytes). In between 8 warps add to 4
    # bins: 8 lanes on each, 7 of them waiting.
    "histogram": {
        **traffic("global_load", 8, 32, 1024),
        **shared("store", 1, 128),
        **shared("load", 1, 128),
        "shared_atomic_requests": 8,
        "shared_atomics": 256,
        "atomic_serialisations": 8 * 7,
        "global_atomic_requests": 1,
        "global_atomic_sectors": 4,
        "global_atomics": 32,
        **dram(1024 + 128, 128),
        "barriers": 2,
    },
    # Indices: 4 sectors a warp. Elements: 16 floats apart, 32 sectors a warp. They move by one
    # float every second warp, by 16 in all: over the 64 bytes between them, 2 sectors for each of
    # 32 lanes.
    "gather": {
        **traffic("global_load", 64, 32 * (4 + 32), 2 * 4096),
        **STORES_1024,
        **dram(4096 + 2048, 4096),
    },
    # 4 blocks x 8 warps x 2 tiles: two loads, each of 2 rows of 16 floats: 2 x 2 sectors. Stores to
    # shared memory fill 32 neighbouring words. In 16 steps of two loads, of a: words 16 apart, 2
    # banks; of b: 16 neighbouring ones. 2 barriers a tile.
    "matmul": {
        **traffic("global_load", 4 * 8 * 2 * 2, 4 * 8 * 2 * 2 * 4, 4 * 256 * 2 * 2 * 4),
        **STORES_1024,
        **shared("store", 4 * 8 * 2 * 2, 4 * 256 * 2 * 2 * 4),
        **shared("load", 4 * 8 * 2 * 16 * 2, 4 * 256 * 2 * 16 * 2 * 4),
        **dram(8192, 4096),
        "barriers": 4 * 2 * 2,
    },
    # One block, four rounds of 256: in the last one threads 0 to 231 have an element, so that warp
    # 7 works with 8 lanes.
    "grid_stride": {
        **traffic("global_load", 32, 125, 4000),
        **traffic("global_store", 32, 125, 4000),
        **dram(4000, 4000),
        "divergent_warps": 1,
    },
    # 5 shuffles in each of 32 warps; lane 0 alone stores, 4 bytes of one sector.
    "warp_sum": {
        **traffic("global_load", 32, 128, 4096),
        **traffic("global_store", 32, 32, 128),
        **dram(4096, 128),
        "warp_exchanges": 32 * 5,
        "divergent_warps": 32,
    },
    # 2 warps. 16 even lanes load every other float of 128 bytes: 4 sectors; each half stores 16
    # neighbouring floats: 2 sectors.
    "branches": {
        **traffic("global_load", 2, 8, 128),
        **traffic("global_store", 4, 8, 256),
        **dram(256, 256),
        "divergent_warps": 2,
    },
    # 32 bytes a warp: one sector.
    "bytes": {
        **traffic("global_load", 32, 32, 1024),
        **traffic("global_store", 32, 32, 1024),
        **dram(1024, 1024),
    },
    # Two halves are 4 bytes, loaded and stored as one.
    "halves": {**traffic("global_load", 32, 128, 4096), **STORES_1024, **dram(4096, 4096)},
}


@pytest.fixture(scope="module")
def counts(emulator: Any) -> Any:
    """Runs a function of the suite: the counts of each launch, without findings."""
    source = Path(__file__).with_name("counts_suite.cu").read_text()
    library = ctypes.CDLL(str(emulator.compile(source, Variant.CHECKED)))

    def run(name: str, *arguments: int, order: int = 0) -> list[dict[str, int]]:
        emulator.runtime.reset()
        emulator.runtime.set_order(order)
        getattr(library, f"run_{name}")(*arguments)
        emulator.runtime.set_order(0)
        report = emulator.report()
        assert report.findings == ()
        assert report.last_error == 0
        assert not any(launch.sampled for launch in report.launches)
        return [launch.counts for launch in report.launches]

    return run


def without_zeros(counts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count and name not in _SIZES}


@pytest.mark.parametrize("order", [0, 1, 9])
@pytest.mark.parametrize("name", list(EXPECTED))
def test_counts_equal_those_derived_by_hand(counts: Any, name: str, order: int) -> None:
    (launch,) = counts(name, order=order)
    assert without_zeros(launch) == EXPECTED[name]


@pytest.mark.parametrize(
    ("stride", "conflicts"),
    [
        (1, 0),  # 8 lanes of a quarter warp fill the 32 banks
        (2, 1),  # 32 bytes apart: lanes 0 and 4 meet in one bank, two wavefronts
    ],
)
def test_wide_shared_accesses_go_by_quarter_warps(counts: Any, stride: int, conflicts: int) -> None:
    (launch,) = counts("shared_vectors", stride)
    for kind in ("load", "store"):
        # 4 warps, 4 quarters each.
        assert launch[f"shared_{kind}_requests"] == 4
        assert launch[f"shared_{kind}_wavefronts"] == 4 * 4 * (1 + conflicts)
        assert launch[f"shared_{kind}_conflicts"] == 4 * 4 * conflicts


def test_sizes(counts: Any) -> None:
    (launch,) = counts("coalesced")
    assert {name: launch[name] for name in _SIZES} == {
        "accesses": 2048,
        "blocks": 4,
        "warps": 32,
        "threads": 1024,
    }


def test_a_fused_kernel_moves_half_the_bytes_of_two(counts: Any) -> None:
    first, second = counts("two_kernels")
    (fused,) = counts("fused")
    # 1024 bytes in and out each; what the fused kernel reads back is on the chip.
    assert first["dram_read_bytes"] + second["dram_read_bytes"] == 2048
    assert first["dram_write_bytes"] + second["dram_write_bytes"] == 2048
    assert (fused["dram_read_bytes"], fused["dram_write_bytes"]) == (1024, 1024)
