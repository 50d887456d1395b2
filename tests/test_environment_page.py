"""What docs/environment.md states, held to the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernelgym import edits, observation, workspace
from kernelgym.judge.verdict import Outcome
from kernelgym.registration import ENV_IDS
from kernelgym.rewards import REWARDS

PAGE = (Path(__file__).parent.parent / "docs" / "environment.md").read_text()


def test_every_name_is_on_the_page(make_env):
    names = [*ENV_IDS, *REWARDS, *observation.COUNTERS, *workspace.SUFFIXES]
    env = make_env()
    names += [*env.observation_space.spaces, *env.reset()[1]]
    assert [name for name in names if name not in PAGE] == []


def test_numbers_on_the_page_are_the_codes(make_env):
    space = make_env().observation_space
    assert f"`SourceText({edits.MAX_ACTION_LENGTH})`" in PAGE
    for name in ("outcome", "timing_mask", "counters_mask"):
        assert re.search(rf"\| `{name}` \| `{re.escape(repr(space[name]))}`", PAGE)
    shown = ", ".join(f"{1 + index} `{outcome}`" for index, outcome in enumerate(Outcome))
    assert f"0 none yet, {shown}" in PAGE


def test_sections_are_gymnasiums():
    sections = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    assert sections == [
        *("Description", "Action Space", "Observation Space", "Starting State", "Rewards"),
        *("Episode End", "Information", "Arguments", "Version History"),
    ]


@pytest.mark.parametrize("block", re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S))
def test_examples_run(block, monkeypatch, fake_judge, fake_task, tmp_path):
    import gymnasium

    made = gymnasium.make

    def make(env_id, **kwargs):
        assert kwargs.pop("task") == "L1/19"
        return made(env_id, task=fake_task, judge=fake_judge, **kwargs)

    monkeypatch.setattr(gymnasium, "make", make)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(block, names)
    if "result" in names:
        names["env"].close()
    if "action" in names:
        assert len(edits.parse(names["action"]).edits) == 2
    if "observation" in names:
        assert names["info"]["edit_error"] == ""
        assert names["info"]["verdict"].outcome is Outcome.REJECTED
