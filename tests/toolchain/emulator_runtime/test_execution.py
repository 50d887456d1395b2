"""The emulator's runtime runs kernels as a GPU would: identity, barriers, warps, limits, faults."""

from __future__ import annotations

import ctypes
import platform
import time
from typing import Any

import pytest

from kernelgym.toolchain.emulator import Variant


@pytest.fixture(params=list(Variant), ids=str)
def call(request: pytest.FixtureRequest, calls: Any) -> Any:
    """Calls a function of kernels.cpp, in both variants: (result, report)."""
    return calls[request.param]


def codes(report: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in report["findings"]]


@pytest.mark.parametrize("order", [0, 1, 7])
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("run_identity", -1),
        ("run_tree_sum", 1024 * 1023 // 2),
        ("run_warp_tail_sum", 256 * 255 // 2),
        ("run_shuffle_sum", 2048 * 2047 // 2),
        ("run_early_return", 100),
        # 32 multiples of 3 below 96; all below 96; not all below 95; one is 95; none is 96.
        ("run_reductions", 32 * 10000 + 1000 + 0 + 10 + 0),
        ("run_module_variable", 18),
    ],
)
def test_results_do_not_depend_on_the_order(
    call: Any, function: str, expected: int, order: int
) -> None:
    result, report = call(function, order=order)
    assert result == expected
    assert report["findings"] == []
    assert report["last_error"] == 0
    assert all(launch["completed"] for launch in report["launches"])


def test_exited_lanes_take_no_part_in_exchanges(call: Any) -> None:
    result, report = call("run_shuffle_with_exited_lanes")
    assert result == 32
    assert report["findings"] == []


@pytest.mark.parametrize(("thread", "mask"), [(0, 0x11111111), (3, 0xEEEEEEEE)])
def test_active_mask_names_the_converged_lanes(call: Any, thread: int, mask: int) -> None:
    assert call("run_converged", thread, result=ctypes.c_uint)[0] == mask


def test_orders(call: Any) -> None:
    def order_of(order: int) -> list[int]:
        threads = (ctypes.c_int * 256)()
        call("run_note_order", threads, order=order)
        return list(threads)

    assert order_of(0) == list(range(256))
    assert order_of(1) == list(range(255, -1, -1))
    assert sorted(order_of(5)) == list(range(256))
    assert order_of(5) not in (order_of(0), order_of(1), order_of(6))
    assert order_of(5) == order_of(5)


def test_a_barrier_that_never_opens_ends_the_kernel(call: Any) -> None:
    _, report = call("run_deadlock")
    assert codes(report) == ["barrier.deadlock"]
    assert "lanes 0xffff0000 of its mask 0xffffffff" in report["findings"][0]["text"]
    assert report["findings"][0]["other"]["access"] == "barrier"
    assert report["last_error"] == 719
    assert not report["launches"][0]["completed"]


def test_barriers_in_diverged_branches_of_a_warp_are_found(call: Any) -> None:
    _, report = call("run_divergent_barriers")
    assert codes(report) == ["barrier.divergent"]
    assert report["findings"][0]["thread"] == [16, 0, 0]
    assert report["last_error"] == 0


@pytest.mark.parametrize(
    ("shape", "error", "code"),
    [
        ((1, 1, 1024, 1, 1, 49152), 0, None),
        ((1, 65535, 16, 1, 64, 0), 0, None),
        ((1, 1, 1025, 1, 1, 0), 9, "launch.configuration"),
        ((1, 1, 64, 32, 1, 0), 9, "launch.configuration"),
        ((1, 1, 1, 1, 65, 0), 9, "launch.configuration"),
        ((1, 1, 0, 1, 1, 0), 9, "launch.configuration"),
        ((0, 1, 1, 1, 1, 0), 9, "launch.configuration"),
        ((1, 65536, 1, 1, 1, 0), 9, "launch.configuration"),
        ((1, 1, 1, 1, 1, 49153), 1, "launch.shared_memory"),
    ],
)
def test_launch_limits(call: Any, shape: tuple[int, ...], error: int, code: str | None) -> None:
    if shape[1] == 65535:
        shape = (1, 8, *shape[2:])  # the limit itself would take long
    result, report = call("run_nothing", *shape)
    assert result == error
    assert codes(report) == ([code] if code else [])
    assert len(report["launches"]) == (0 if error else 1)


@pytest.mark.parametrize(
    ("dynamic", "raised_to", "expected"),
    [
        (49152 - 40000, 0, 0),
        (49152 - 40000 + 1, 0, 1),
        (49152 - 40000 + 1, 50000, 0),
        (50001, 50000, 1),
        (0, 227 * 1024 - 40000 + 1, 100),  # the attribute itself is refused
    ],
)
def test_static_shared_memory_counts_towards_the_limit(
    call: Any, dynamic: int, raised_to: int, expected: int
) -> None:
    assert call("run_static_shared", dynamic, raised_to)[0] == expected


@pytest.mark.parametrize(
    ("function", "arguments", "error", "code"),
    [
        ("run_recursion", (100_000,), 714, "memory.stack_overflow"),
        ("run_large_local", (), 714, "memory.stack_overflow"),
        pytest.param(
            *("run_division", (), 719, "arithmetic.division_by_zero"),
            marks=pytest.mark.skipif(
                platform.machine() != "x86_64", reason="division does not trap there"
            ),
        ),
        ("run_assert", (), 710, "assert"),
        ("run_trap", (), 719, "trap"),
        ("run_nested", (), 719, "unsupported"),
        ("run_far_write", (), 700, "memory.out_of_bounds"),
    ],
)
def test_faults_are_findings(
    call: Any, function: str, arguments: tuple[int, ...], error: int, code: str
) -> None:
    _, report = call(function, *arguments)
    assert codes(report) == [code]
    assert report["last_error"] == error
    # The process goes on, and so does the device after a reset.
    assert call("run_tree_sum")[0] == 1024 * 1023 // 2


def test_an_assert_says_what_failed_and_where(call: Any) -> None:
    finding = call("run_assert")[1]["findings"][0]
    assert finding["thread"] == [5, 0, 0]
    assert "threadIdx.x < limit" in finding["text"]
    assert "k.cu:7" in finding["text"]


def test_a_sticky_error_stops_later_launches(call: Any) -> None:
    result, report = call("run_nothing_after_trap")
    assert result == 719
    assert [launch["kernel"] for launch in report["launches"]] == ["trapping"]
    assert call("run_nothing", 1, 1, 1, 1, 1, 0)[0] == 0


def test_bounded_recursion_is_allowed(call: Any) -> None:
    assert call("run_recursion", 50)[1]["findings"] == []


def test_printf_survives_any_bytes(call: Any) -> None:
    _, report = call("run_printing")
    assert report["printf"] == '0 "\ufffd" 1\n1 "\ufffd" 1\n'


def test_a_million_threads_take_less_than_a_second(calls: Any) -> None:
    checksum = ctypes.c_double()
    start = time.process_time()
    calls[Variant.FAST]("run_million", ctypes.byref(checksum))
    assert time.process_time() - start < 1.0
    assert checksum.value == 3.0
