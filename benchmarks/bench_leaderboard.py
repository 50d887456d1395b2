"""How long the board takes to read and score 500 entries of 250 tasks, and one more after that.

`pytest benchmarks/bench_leaderboard.py` measures a twentieth of it; `python -m
benchmarks.bench_leaderboard` all of it, with the peak memory, as one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import tempfile
import time
from pathlib import Path

import pytest

from kernelgym.leaderboard import synthetic
from kernelgym.leaderboard.summaries import summaries

ENTRIES = 500
FEW = 25


def write_entries(root: Path, count: int, workers: int = 1) -> None:
    """Writes made-up entries of 250 tasks each."""
    jobs = [(root, f"made-{number:04d}", number) for number in range(count)]
    if workers == 1:
        for job in jobs:
            synthetic.write_synthetic(*job)
        return
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        pool.starmap(synthetic.write_synthetic, jobs)


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    root = tmp_path_factory.mktemp("entries")
    write_entries(root, FEW)
    return root


def test_25_new_entries(benchmark, entries, tmp_path):
    caches = (tmp_path / str(number) for number in range(100))
    found = benchmark.pedantic(lambda: summaries(entries, next(caches), workers=1), rounds=3)
    assert len(found) == FEW


def test_25_known_entries(benchmark, entries, tmp_path):
    summaries(entries, tmp_path, workers=1)
    assert len(benchmark(lambda: summaries(entries, tmp_path, workers=1))) == FEW


def _cpu_seconds() -> float:
    """Of this process and of the children that have ended."""
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=ENTRIES)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="write the entries here, and leave them")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = asked.keep or Path(scratch) / "entries"
        cache = Path(scratch) / "cache"
        if not root.exists():
            root.mkdir(parents=True)
            write_entries(root, asked.entries, asked.workers)
        told = {"entries": asked.entries, "workers": asked.workers, "cpus": os.cpu_count()}
        for name, added in (("first", 0), ("again", 0), ("one_more", 1)):
            if added:
                synthetic.write_synthetic(root, "one-more", 10**6)
            start, used = time.perf_counter(), _cpu_seconds()
            found = summaries(root, cache, workers=asked.workers)
            told[f"{name}_seconds"] = round(time.perf_counter() - start, 2)
            told[f"{name}_cpu_seconds"] = round(_cpu_seconds() - used, 2)
            assert len(found) == asked.entries + added
    own, children = (
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    told["peak_mib"] = {"main": own // 1024, "largest_worker": children // 1024}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
