"""The pages under docs/tasks, which a script writes."""

import importlib.util
import pathlib

import pytest

from kernelgym.judge.audit import load

ROOT = pathlib.Path(__file__).parent.parent


@pytest.fixture(scope="module")
def task_pages():
    spec = importlib.util.spec_from_file_location("task_pages", ROOT / "scripts/task_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Facts of level 3 at full size take most of a minute.
@pytest.mark.parametrize("level", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_a_page_is_up_to_date(task_pages, level):
    path = ROOT / "docs" / "tasks" / f"level{level}.md"
    assert path.read_text(encoding="utf-8") == task_pages.page(level, load())


def test_a_page_says_what_passes(task_pages):
    records = load()
    assert task_pages.status("L1/19", "", records).startswith("KB (small")
    assert task_pages.status("L1/22", "", records) == ""
    assert task_pages.status("L2/80", "proof", records) == "**unscorable**"


def test_numbers(task_pages):
    assert task_pages.quantity(137438953472) == "137 G"
    assert task_pages.quantity(0) == "-"
    assert task_pages.quantity(999) == "999"
    assert task_pages.shape((3, 4)) == "3x4"
    assert task_pages.shape(()) == "()"
