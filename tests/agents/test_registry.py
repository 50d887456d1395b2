"""Agents are found by name, wherever they live."""

import dataclasses
import importlib
import pathlib
import re
import sys

import gymnasium as gym
import pytest

import kernelgym
from kernelgym import agents
from kernelgym.agents.random_edits import RandomEdits
from kernelgym.agents.search import Search
from kernelgym.errors import UsageError

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "agents.md"


def test_bundled_agents():
    assert set(agents.NAMES) == {
        "coding_cli",
        "lm_policy",
        "openai_chat",
        "random_edits",
        "repair",
        "sb3_ppo",
        "search",
        "small_policy",
    }
    assert isinstance(agents.get("search", patience=2), Search)
    assert isinstance(agents.get("kernelgym.agents.random_edits:RandomEdits"), RandomEdits)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("serch", {}, "did you mean 'search'"),
        ("kernelgym.agents.search:Serch", {}, "did you mean 'Search'"),
        ("no_such_module:agent", {}, "cannot import"),
        ("no_such_file.py:agent", {}, "expected a Python file"),
        ("search", {"patence": 1}, "patence"),
        ("kernelgym.agents:NAMES", {}, "expected something to call"),
        ("kernelgym.agents:get", {"seed": 1}, "expected no arguments"),
        (":", {}, "expected one of"),
    ],
)
def test_what_is_no_agent(name, arguments, message):
    with pytest.raises(UsageError, match=message):
        agents.get(name, **arguments)


def test_a_module_of_the_current_folder_is_found(tmp_path, monkeypatch):
    (tmp_path / "agent_of_this_folder.py").write_text("def agent(observation, info): ...\n")
    monkeypatch.chdir(tmp_path)
    # As the console script's path is: without the current folder.
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p not in ("", str(tmp_path))])
    assert agents.get("agent_of_this_folder:agent").__module__ == "agent_of_this_folder"


def test_the_pages_example_plays(judge, tmp_path):
    """The five-line agent of the documentation, as a file of its own."""
    text = PAGE.read_text(encoding="utf-8")
    example = re.search(r"```python my_agent.py\n(.*?)```", text, re.DOTALL).group(1)
    assert len([line for line in example.splitlines() if line.strip()]) == 5
    path = tmp_path / "my_agent.py"
    path.write_text(example, encoding="utf-8")
    agent = agents.get(f"{path}:agent")
    env = gym.make("kernelgym:Kernel-v0", task="L1/19", max_turns=2, judge=judge)
    result = kernelgym.run_episode(env, agent)
    assert result.solved, result.turns[-1].verdict


@pytest.mark.parametrize("name", agents.NAMES)
def test_its_page_lists_every_argument(name):
    own = PAGE.parent / "agents" / f"{name}.md"
    text = (own if own.exists() else PAGE).read_text(encoding="utf-8")
    module = importlib.import_module(f"kernelgym.agents.{name}")
    listed = {
        found
        for row in re.findall(r"^\| (`.*?) \|", text, re.M)
        for found in re.findall(r"`(\w+)`", row)
    }
    assert listed >= {field.name for field in dataclasses.fields(module.Arguments)}
    assert f"--agent {name} " in text
