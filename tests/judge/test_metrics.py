from __future__ import annotations

import pathlib
import re

import pytest

from kernelgym.judge.metrics import (
    ALTERNATIVES,
    METRICS,
    SHARES,
    STALLS,
    counter_values,
    top_stall,
)

# One launch of a kernel that copies 4,096 floats: 128 warps, a load and a store each.
COPY: dict[str, float] = {
    **dict.fromkeys(METRICS, 0.0),
    "time": 2000.0,
    "dram_bytes_read": 16384.0,
    "dram_bytes_written": 8192.0,
    "occupancy": 50.0,
    "instructions": 1280.0,
    "thread_instructions": 40960.0,
    "warps": 128.0,
    "warp_cycles": 4000.0,
    "l2_hits": 300.0,
    "l2_misses": 100.0,
    "load_requests": 128.0,
    "load_sectors": 512.0,
    "store_requests": 128.0,
    "store_sectors": 1024.0,
    "dram_throughput": 40.0,
    "l2_throughput": 60.0,
    "l1_throughput": 20.0,
    "issue": 5.0,
    "alu": 10.0,
    "fma": 3.0,
    "stall_long_scoreboard": 3000.0,
    "stall_barrier": 200.0,
}


def test_one_launch_gives_sums_shares_and_ratios() -> None:
    seconds, pairs = counter_values([COPY])
    values = dict(pairs)
    assert seconds == pytest.approx(2e-6)
    assert values["dram_bytes_read"] == 16384
    assert values["occupancy"] == pytest.approx(0.5)
    # The busiest of its kind.
    assert values["memory_throughput"] == pytest.approx(0.6)
    assert values["sm_throughput"] == pytest.approx(0.1)
    assert values["l2_hit_rate"] == pytest.approx(0.75)
    assert values["threads_per_instruction"] == pytest.approx(32)
    assert values["requests"] == 256
    assert values["sectors_per_request"] == pytest.approx(6)
    assert values["load_sectors_per_request"] == pytest.approx(4)
    assert values["store_sectors_per_request"] == pytest.approx(8)
    assert values["bank_conflicts_per_request"] == 0
    assert values["stall_long_scoreboard"] == pytest.approx(0.75)
    assert top_stall(values) == ("long_scoreboard", pytest.approx(0.75))


def test_shares_of_several_launches_are_weighted_by_their_time() -> None:
    long = {**COPY, "time": 6000.0, "occupancy": 90.0, "l2_hits": 0.0}
    seconds, pairs = counter_values([COPY, long])
    values = dict(pairs)
    assert seconds == pytest.approx(8e-6)
    assert values["occupancy"] == pytest.approx((0.5 * 2 + 0.9 * 6) / 8)
    # Ratios come from sums, not from ratios.
    assert values["l2_hit_rate"] == pytest.approx(300 / 500)
    assert values["dram_bytes_written"] == 16384


def test_what_was_not_counted_is_left_out() -> None:
    without = {n: v for n, v in COPY.items() if n not in ("l2_misses", "occupancy", "warp_cycles")}
    values = dict(counter_values([COPY, without])[1])
    assert not {"l2_hit_rate", "occupancy", "stall_barrier"} & set(values)
    assert values["requests"] == 512
    assert top_stall(values) is None
    assert counter_values([]) == (0.0, ())
    assert "occupancy" not in dict(counter_values([{**COPY, "time": 0.0}])[1])


def test_a_share_is_at_most_one() -> None:
    values = dict(counter_values([{**COPY, "dram_throughput": 103.0}])[1])
    assert values["dram_throughput"] == 1.0
    assert set(values) >= SHARES


def test_the_page_explains_every_counter() -> None:
    page = (pathlib.Path(__file__).parents[2] / "docs" / "judge.md").read_text()
    section = page.split("## Counters", 1)[1].split("\n## ", 1)[0]
    explained = set(re.findall(r"`(\w+)`", section))
    names = {name for name, _ in counter_values([COPY])[1]}
    assert not {name for name in names if not name.startswith("stall_")} - explained
    assert set(STALLS) <= explained
    for name, metrics in ALTERNATIVES.items():
        if not name.startswith("stall_"):
            assert metrics[0].split(".")[0] in explained, name
