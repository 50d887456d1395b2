"""Entries in short: read once, kept by content, and read again when anything changes."""

from __future__ import annotations

import os

import pytest

from kernelgym.errors import RecordError
from kernelgym.leaderboard import summaries as module
from kernelgym.leaderboard import synthetic
from kernelgym.leaderboard.entry import Status
from kernelgym.leaderboard.loading import load_entry
from kernelgym.leaderboard.scores import score_entry
from kernelgym.leaderboard.summaries import summaries


@pytest.fixture
def reads(monkeypatch):
    """The folders that were read in full."""
    seen = []

    def load(folder):
        seen.append(folder.name)
        return load_entry(folder)

    monkeypatch.setattr(module, "load_entry", load)
    return seen


def test_a_summary_says_what_the_entry_does(fixtures, tmp_path):
    first, second = summaries(fixtures, tmp_path / "cache")
    entry = load_entry(next(fixtures.glob("*/second-wind")))
    assert first.status is Status.VERIFIED
    assert second.id == entry.id
    assert second.info == entry.info
    assert second.scores == score_entry(entry)
    assert second.rejected == (("L3/9", "rule.torch_compute"),)
    assert second.problems == ()


def test_what_is_kept_is_not_read_again(fixtures, tmp_path, reads):
    before = summaries(fixtures, tmp_path / "cache")
    assert sorted(reads) == ["first-light", "second-wind"]
    assert summaries(fixtures, tmp_path / "cache") == before
    assert len(reads) == 2


def test_only_what_changes_is_read_again(fixtures, first, tmp_path, reads):
    summaries(fixtures, tmp_path / "cache")
    (first / "verification.json").unlink()
    reads.clear()
    assert [s.status for s in summaries(fixtures, tmp_path / "cache")] == [Status.UNVERIFIED] * 2
    assert reads == ["first-light"]


def test_a_change_is_seen_though_size_and_time_are_set_back(fixtures, first, tmp_path, reads):
    summaries(fixtures, tmp_path / "cache")
    path = first / "entry.yaml"
    before = path.stat()
    path.write_text(path.read_text().replace("agent: made-up", "agent: made-it"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    reads.clear()
    assert summaries(fixtures, tmp_path / "cache")[0].info.agent == "made-it"
    assert reads == ["first-light"]


def test_a_broken_cache_is_made_anew(fixtures, tmp_path, reads):
    before = summaries(fixtures, tmp_path / "cache")
    for kept in (tmp_path / "cache").iterdir():
        kept.write_bytes(b"\xc1")
    assert summaries(fixtures, tmp_path / "cache") == before
    assert len(reads) == 4


def test_a_broken_entry_is_named(fixtures, first, tmp_path):
    (first / "verdicts.jsonl").unlink()
    with pytest.raises(RecordError, match=r"first-light: expected verdicts\.jsonl"):
        summaries(fixtures, tmp_path / "cache")
    assert len(summaries(fixtures, tmp_path / "cache", without=first)) == 1


def test_many_are_read_by_several_processes(tmp_path):
    for number in range(6):
        synthetic.write_synthetic(tmp_path / "e", f"made-{number}", number, tasks=("L1/19",))
    done = []
    found = summaries(
        tmp_path / "e",
        tmp_path / "cache",
        workers=2,
        progress=lambda n, total: done.append((n, total)),
    )
    assert [s.info.name for s in found] == [f"made-{number}" for number in range(6)]
    assert done[-1] == (6, 6)
