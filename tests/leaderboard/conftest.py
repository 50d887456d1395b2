"""Runs played under a stub judge, and entries to be broken."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kernelgym import runs
from kernelgym import tasks as catalogue
from tests.leaderboard.stubs import FIXTURES, SCRIPTS, Scripted, StubJudge


@pytest.fixture
def make_run(tmp_path):
    """Plays a run under a stub judge; returns its folder."""

    def make(scripts=SCRIPTS, *, judge: StubJudge | None = None, name: str = "run") -> Path:
        judge = judge or StubJudge()
        plan = runs.RunPlan("scripted", tuple(scripts), judge.config, 8)
        tasks = [catalogue.get(task) for task in scripts]
        runs.play(plan, tasks, Scripted(scripts), tmp_path / name, judge=judge)
        return tmp_path / name

    return make


@pytest.fixture
def entries(tmp_path) -> Path:
    """An empty folder of entries."""
    folder = tmp_path / "entries"
    folder.mkdir()
    return folder


@pytest.fixture
def fixtures(tmp_path) -> Path:
    """A copy of the two entries kept beside these tests, to be broken."""
    return Path(shutil.copytree(FIXTURES, tmp_path / "entries"))


@pytest.fixture
def first(fixtures) -> Path:
    return next(fixtures.glob("*/first-light"))
