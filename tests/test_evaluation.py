"""Agents under budgets: what is counted, what ends an episode, and how it goes on after a kill."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import kernelgym
from kernelgym import runs, tasks, traces
from kernelgym.budget import Budget, Metered, Usage, usage_of
from kernelgym.cli import app
from kernelgym.config import JudgeConfig
from kernelgym.errors import ConfigError, UsageError
from kernelgym.evaluation import evaluate_agent, read_evaluation
from kernelgym.resampling import Estimate


class Words:
    """Writes one file after another and counts 10 tokens for each; "-" is no edit."""

    def __init__(self, *words: str, verdicts: int = 0) -> None:
        self.words = words
        self.own_verdicts = verdicts
        self.usage = Usage()
        self.episodes: list[str] = []
        self.left: list[str] = []
        self.told: list[Any] = []

    def reset(self, info: dict[str, Any]) -> None:
        self.episodes.append(info["task_id"])
        self.left = list(self.words)

    def __call__(self, observation: Any, info: dict[str, Any]) -> str:
        self.told.append((info["verdicts_left"], observation["feedback"].splitlines()[-1]))
        self.usage += Usage(1, 8, 2, 0.5, self.own_verdicts)
        word = self.left.pop(0)
        return "none" if word == "-" else f"```python model_new.py\n# {word} \n```\n"


def test_verdicts_are_the_budget_and_refused_edits_cost_none(
    tmp_path: Path, fake_judge: Any
) -> None:
    agent = Words("wrong!", "-", "fast=2.0", "fast=9.0")
    found = evaluate_agent(agent, ["L1/19"], 2, out=tmp_path / "run", judge=fake_judge)
    [task] = found.tasks
    assert (task.turns, task.verdicts, task.first_correct) == (3, 2, 2)
    assert agent.told == [
        (2, "Verdicts left: 2"),
        (1, "Verdicts left: 1"),
        (1, "Verdicts left: 1"),
    ]
    assert found.solved_within == ((1, 0.0), (2, 1.0))
    assert found.first_correct == Estimate(2.0, 2.0, 2.0)
    assert found.usage == task.usage == Usage(3, 24, 6, 1.5)
    [episode] = traces.read(tmp_path / "run" / "trace.jsonl")
    assert episode.finished
    assert [step.usage for step in episode.steps] == [Usage(1, 8, 2, 0.5)] * 3


def test_the_best_of_a_trajectory_and_the_last_are_scored_apart(
    tmp_path: Path, fake_judge: Any
) -> None:
    agent = Words("fast=3.0", "fast=1.5", "wrong!")
    found = evaluate_agent(agent, ["L1/19", "L2/76"], 3, out=tmp_path / "run", judge=fake_judge)
    best, last = found.best["all"], found.last["all"]
    assert best.correct.value == 1.0
    assert best.eager is not None
    assert best.compile is not None
    assert best.eager.geomean_correct is not None
    assert best.eager.geomean_correct.value == pytest.approx(3.0)
    assert best.compile.geomean_all.value == pytest.approx(1.5)
    assert dict(best.eager.fast)[2.0].value == 1.0
    assert dict(best.compile.fast)[2.0].value == 0.0
    assert last.correct.value == 0.0
    assert set(found.best) == {"all", "L1", "L2"}
    # L2/76 is clean under the audited protocol, and so is L1/19.
    assert found.clean["all"].tasks == 2


@pytest.mark.parametrize(
    ("budget", "turns"),
    [(Budget(tokens=20), 2), (Budget(cost=1.0), 2), (Budget(verdicts=4), 2), (Budget(), 3)],
)
def test_any_limit_ends_an_episode(
    tmp_path: Path, fake_judge: Any, budget: Budget, turns: int
) -> None:
    agent = Words("wrong!", "wrong!", "wrong!", verdicts=1)
    plan = runs.RunPlan("w", ("L1/19",), fake_judge.config, 3, budget=budget)
    [result] = runs.play(plan, [tasks.get("L1/19")], agent, tmp_path / "run", judge=fake_judge)
    assert result.turns == turns
    assert read_evaluation(tmp_path / "run").verdicts == 2 * turns


def test_time_ends_an_episode(make_env: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 10.0, 14.0, 15.0])
    monkeypatch.setattr("kernelgym.budget.time.monotonic", lambda: next(clock))
    env = Metered(make_env(), Budget(seconds=5.0), lambda observation, info: "")
    env.reset()
    assert env.step("none")[3] is False
    _, _, terminated, truncated, info = env.step("none")
    assert (terminated, truncated, info["spent"]) == (False, True, "seconds")


def test_it_goes_on_after_a_kill(tmp_path: Path, fake_judge: Any) -> None:
    class Killed(Words):
        def __call__(self, observation: Any, info: dict[str, Any]) -> str:
            if self.episodes == ["L1/19", "L1/23"] and info["turn"] == 1:
                raise KeyboardInterrupt
            return super().__call__(observation, info)

    out = tmp_path / "run"
    names = ["L1/19", "L1/23", "L1/26"]
    with pytest.raises(KeyboardInterrupt):
        evaluate_agent(
            Killed("fast=2.0", "wrong!"), names, 2, out=out, judge=fake_judge, name="words"
        )
    before = read_evaluation(out)
    assert (before.finished, before.best["all"].correct.value) == (1, pytest.approx(1 / 3))
    agent = Words("fast=2.0", "wrong!")
    after = evaluate_agent(agent, names, 2, out=out, judge=fake_judge, name="words")
    assert agent.episodes == ["L1/23", "L1/26"]
    assert after.finished == 3
    assert [task.turns for task in after.tasks] == [2, 2, 2]
    # The turn of the episode that was cut off was paid for as well.
    assert after.usage.requests == 7
    with pytest.raises(UsageError, match="budget"):
        evaluate_agent(agent, names, 3, out=out, judge=fake_judge, name="words")


def test_what_an_agent_learns_is_kept(tmp_path: Path, fake_judge: Any) -> None:
    class Learns(Words):
        lessons = 0

        def reset(self, info: dict[str, Any]) -> None:
            super().reset(info)
            self.lessons += 1

        def save(self, path: Path) -> None:
            path.write_text(str(self.lessons))

        def load(self, path: Path) -> None:
            self.lessons = int(path.read_text())

    out = tmp_path / "run"
    evaluate_agent(Learns("wrong!"), ["L1/19", "L1/23"], 1, out=out, judge=fake_judge, name="x")
    agent = Learns("wrong!")
    evaluate_agent(agent, ["L1/19", "L1/23", "L1/26"], 1, out=out, judge=fake_judge, name="x")
    assert agent.lessons == 3


def test_compilers_runs_are_counted(tmp_path: Path, fake_judge: Any) -> None:
    agent = Words("syntax!", "wrong!")
    found = evaluate_agent(agent, ["L1/19"], 2, out=tmp_path / "run", judge=fake_judge)
    assert (found.builds, found.verdicts) == (1, 2)


def test_levels_are_tasks(tmp_path: Path, fake_judge: Any) -> None:
    found = evaluate_agent(Words("wrong!"), ["L3"], 1, out=tmp_path / "run", judge=fake_judge)
    assert len(found.tasks) == 50
    with pytest.raises(UsageError, match="at least one"):
        evaluate_agent(Words(), [], 1, out=tmp_path / "none", judge=fake_judge)


def test_a_budget_leaves_something() -> None:
    with pytest.raises(ConfigError, match="tokens: expected more than 0, got 0"):
        Budget(tokens=0)
    assert Budget(verdicts=1).turns == 2
    assert usage_of(lambda observation, info: "") == Usage()
    assert kernelgym.Budget is Budget


def test_the_command_shows_scores(tmp_path: Path, fake_judge: Any) -> None:
    out = tmp_path / "run"
    evaluate_agent(Words("fast=2.0", "wrong!"), ["L1/19", "L2/76"], 2, out=out, judge=fake_judge)
    result = CliRunner().invoke(app, ["scores", str(out), str(out)])
    assert result.exit_code == 0
    rows = {line[:36].strip(): line[36:].split() for line in result.output.splitlines()}
    assert "100.0%" in rows["correct"]
    line = CliRunner().invoke(app, ["scores", "--json", str(out)]).output
    told = json.loads(line)
    assert told["best"]["all"]["eager"]["geomean_all"]["value"] == pytest.approx(2.0)
    assert told["tasks"][0]["best"] == "correct, 2.00x eager, 1.00x compile"
    missing = CliRunner().invoke(app, ["scores", str(tmp_path)])
    assert missing.exit_code == 2


def test_the_config_is_the_judges(tmp_path: Path, fake_judge: Any) -> None:
    with pytest.raises(UsageError, match="no config beside it"):
        evaluate_agent(
            Words(), ["L1/19"], 1, out=tmp_path, judge=fake_judge, config=JudgeConfig(device="cpu")
        )
