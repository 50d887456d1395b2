"""How long the pages of 500 entries of 250 tasks take, and those of one more after that.

`pytest benchmarks/bench_leaderboard_site.py` measures two entries; `python -m
benchmarks.bench_leaderboard_site` all of it, with the peak memory, as JSON (also to `--out FILE`). There, 25 made-up
entries stand under 20 names each: pages are made from each one anew.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import resource
import shutil
import tempfile
import time
from pathlib import Path

import pytest

from kernelgym.leaderboard import synthetic
from kernelgym.leaderboard.site import build_site

ENTRIES = 500
DIFFERENT = 25


def write_entries(root: Path, count: int) -> None:
    """Writes made-up entries; those beyond the first are links to the files of others."""
    made = [
        synthetic.write_synthetic(root, f"made-{number}", number)
        for number in range(min(count, DIFFERENT))
    ]
    for number in range(len(made), count):
        copy = root / synthetic.BOARD.slug / f"made-{number}"
        shutil.copytree(made[number % DIFFERENT], copy, copy_function=os.link)


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    root = tmp_path_factory.mktemp("entries")
    write_entries(root, 2)
    return root


def test_two_new_entries(benchmark, entries, tmp_path):
    sites = (tmp_path / str(number) for number in range(100))
    built = benchmark.pedantic(lambda: build_site(entries, next(sites), jobs=1), rounds=3)
    assert built.entries == 2


def test_two_known_entries(benchmark, entries, tmp_path):
    build_site(entries, tmp_path, jobs=1)
    assert benchmark(lambda: build_site(entries, tmp_path, jobs=1)).written == 0


def _cpu_seconds() -> float:
    """Of this process and of the children that have ended."""
    own, children = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=ENTRIES)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    told: dict[str, object] = {
        "command": "python -m benchmarks.bench_leaderboard_site",
        "date": datetime.date.today().isoformat(),
        "entries": asked.entries,
        "tasks": len(synthetic.BOARD.tasks),
        "jobs": asked.jobs,
        "hardware": {"cpus": os.cpu_count(), "machine": platform.platform()},
        "load_before": os.getloadavg()[0],
    }
    with tempfile.TemporaryDirectory() as scratch:
        root, site = Path(scratch) / "entries", Path(scratch) / "site"
        write_entries(root, asked.entries)
        for name, added in (("first", 0), ("again", 0), ("one_more", 1)):
            if added:
                synthetic.write_synthetic(root, "one-more", 10**6)
            start, used = time.perf_counter(), _cpu_seconds()
            built = build_site(root, site, jobs=asked.jobs)
            told[f"{name}_seconds"] = round(time.perf_counter() - start, 2)
            told[f"{name}_cpu_seconds"] = round(_cpu_seconds() - used, 2)
            told[f"{name}_files"] = built.written
        # Told before the folder is removed, which takes minutes where others use the disk.
        own, children = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        told["peak_mib"] = {
            "main": own.ru_maxrss // 1024,
            "largest_worker": children.ru_maxrss // 1024,
        }
        told["load_after"] = os.getloadavg()[0]
        text = json.dumps(told, indent=1)
        print(text)
        if asked.out:
            asked.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
