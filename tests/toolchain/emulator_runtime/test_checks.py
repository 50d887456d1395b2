"""The checked variant finds races, accesses out of bounds, and reads of what nobody wrote."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from kernelgym.toolchain.emulator import Variant


@pytest.fixture
def call(calls: Any) -> Any:
    """Calls a function of kernels.cpp, checked: (result, report)."""
    return calls[Variant.CHECKED]


def codes(report: dict[str, Any]) -> set[str]:
    return {finding["code"] for finding in report["findings"]}


@pytest.mark.parametrize("order", [0, 1, 7])
@pytest.mark.parametrize(
    "function",
    [
        "run_tree_sum_no_first_barrier",
        "run_tree_sum_no_inner_barrier",
        "run_warp_tail_sum_unsynchronised",
    ],
)
def test_a_missing_barrier_is_found_in_every_order(call: Any, function: str, order: int) -> None:
    _, report = call(function, order=order)
    races = [finding for finding in report["findings"] if finding["code"] == "race.shared"]
    assert races
    for race in races:
        assert "__shared__ partial" in race["text"]
        assert race["where"]["module"].endswith("kernels_checked.so")
        assert race["other"]["where"]["offset"] > 0
        assert race["other"]["thread"] != race["thread"]


def test_out_of_bounds_names_thread_and_distance(call: Any) -> None:
    _, report = call("run_copy", 60, 64, 64, 1)
    (finding,) = report["findings"]
    assert finding["code"] == "memory.out_of_bounds"
    assert finding["text"] == "read of 4 bytes at byte 240 of in (240 bytes)"
    assert (finding["block"], finding["thread"]) == ([0, 0, 0], [60, 0, 0])
    assert report["last_error"] == 700
    assert not report["launches"][0]["completed"]


@pytest.mark.parametrize(
    ("function", "arguments", "text"),
    [
        ("run_copy", (128, 127, 128, 1), "write of 4 bytes at byte 508 of out (508 bytes)"),
        ("run_shared_overflow", (100,), "at byte 100 of dynamic shared memory (100 bytes)"),
        ("run_block_copy", (1,), "read of 4 bytes at byte 96 of in (99 bytes)"),
        ("run_registered", (0,), "read of 4 bytes at an address near no allocation"),
        ("run_far_write", (), "write of 4 bytes at address 64, a null pointer"),
    ],
)
def test_out_of_bounds(call: Any, function: str, arguments: tuple[int, ...], text: str) -> None:
    _, report = call(function, *arguments)
    assert [finding["code"] for finding in report["findings"]] == ["memory.out_of_bounds"]
    assert text in report["findings"][0]["text"]


@pytest.mark.parametrize(
    ("function", "arguments", "result"),
    [
        ("run_copy", (64, 64, 64, 1), None),
        ("run_shared_overflow", (99,), None),
        ("run_block_copy", (0,), 7),
        ("run_registered", (1,), 1),
        ("run_vector_copy", (0,), None),
        ("run_view_first", (8,), None),
        ("run_view", (), 2),  # known while the view lives, then forgotten
        ("run_spin", (), 5),  # lanes that spin let the other warp run
    ],
)
def test_what_is_right_raises_nothing(
    call: Any, function: str, arguments: tuple[int, ...], result: int | None
) -> None:
    value, report = call(function, *arguments)
    assert report["findings"] == []
    if result is not None:
        assert value == result


def test_misaligned_vectors(call: Any) -> None:
    _, report = call("run_vector_copy", 1)
    assert codes(report) == {"memory.misaligned"}
    assert report["last_error"] == 716


def test_global_memory_never_written(call: Any) -> None:
    _, report = call("run_copy", 64, 64, 64, 0)
    (finding,) = report["findings"]
    assert finding["code"] == "memory.uninitialised"
    assert finding["text"] == "read of byte 0 of in (256 bytes), which nobody has written"


def test_shared_memory_never_written(call: Any) -> None:
    _, report = call("run_unwritten_shared")
    (finding,) = report["findings"]
    assert finding["code"] == "memory.uninitialised"
    assert finding["thread"] == [58, 0, 0]
    assert "byte 20 of __shared__ tile" in finding["text"]


def test_host_copies_are_checked_and_pass_on_what_is_unwritten(call: Any) -> None:
    value, report = call("run_host_copies")
    assert value == 1  # the first copy succeeds, the second is cudaErrorInvalidValue
    copied, read = report["findings"]
    assert copied["text"] == "copy from the device of 20 bytes at byte 0 of a (16 bytes)"
    assert read["text"] == "read of byte 0 of b (16 bytes), which nobody has written"


def test_more_accesses_than_a_trace_holds_are_all_counted(call: Any) -> None:
    value, report = call("run_long_loop", 10_000, result=ctypes.c_float)
    counts = report["launches"][0]["counts"]
    assert value == 10_000
    # One warp, 32 neighbouring floats each time: 128 bytes, 4 sectors a request.
    assert counts["global_load_requests"] == 10_000
    assert counts["global_load_sectors"] == 40_000
    assert counts["dram_read_bytes"] == 10_000 * 128
    assert counts["divergent_warps"] == 0


def test_past_the_budget_blocks_are_sampled_and_counts_scaled(call: Any) -> None:
    n = 64 * 1000
    whole = call("run_copy", n, n, n, 1)[1]["launches"][0]
    sampled = call("run_copy", n, n, n, 1, budget=10_000)[1]["launches"][0]
    assert not whole["sampled"]
    assert sampled["sampled"]
    assert sampled["counts"] == whole["counts"]


def test_unwatched_blocks_still_run(call: Any) -> None:
    checksum = ctypes.c_double()
    _, report = call("run_million", ctypes.byref(checksum), budget=1000)
    assert checksum.value == 3.0
    assert report["launches"][0]["sampled"]
    assert report["launches"][0]["counts"]["threads"] == 1 << 20
    assert report["findings"] == []
