from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kernelgym import agents, runs, tasks, traces
from kernelgym.cli import app
from kernelgym.cli.exits import Exit
from kernelgym.config import JudgeConfig
from kernelgym.errors import RecordError, UsageError
from kernelgym.judge.verdict import from_json
from kernelgym.runner import Agent

CONFIG = JudgeConfig(device="cpu")


class Words:
    """Writes one file after another, then submits."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.left: list[str] = []
        self.episodes = 0

    def reset(self, info: dict[str, Any]) -> None:
        self.left = list(self.words)
        self.episodes += 1

    def __call__(self, observation: Any, info: dict[str, Any]) -> str:
        if not self.left:
            return "submit"
        return f"```python model_new.py\n# {self.left.pop(0)}\n```\n"


def plan(*task_ids: str, **fields: Any) -> runs.RunPlan:
    return runs.RunPlan("words", task_ids, CONFIG, **fields)


def played(
    out: Path, judge: Any, agent: Agent, *task_ids: str, **callbacks: Any
) -> list[runs.TaskResult]:
    found = [tasks.get(task_id) for task_id in task_ids]
    return runs.play(plan(*task_ids), found, agent, out, judge=judge, **callbacks)


def test_a_run_leaves_plan_trace_and_the_best_files(tmp_path: Path, fake_judge: Any) -> None:
    agent = Words("wrong!", "fast=2.0 ", "fast=1.5 ")
    [result] = played(tmp_path / "run", fake_judge, agent, "L1/19")
    assert (result.task_id, result.turns, result.solved) == ("L1/19", 4, True)
    best = tmp_path / "run" / "solutions" / "L1-019"
    assert "fast=2.0" in (best / "model_new.py").read_text()
    assert from_json((best / "verdict.json").read_text()) == result.best
    assert runs.read_plan(tmp_path / "run") == plan("L1/19")
    [episode] = traces.read(tmp_path / "run" / "trace.jsonl")
    assert [step.verdict is not None for step in episode.steps] == [True, True, True, False]


def test_no_solution_is_kept_of_what_is_wrong(tmp_path: Path, fake_judge: Any) -> None:
    [result] = played(tmp_path, fake_judge, Words("wrong!"), "L1/19")
    assert not result.solved
    assert not (tmp_path / "solutions").exists()


def test_finished_tasks_are_skipped_and_others_added(tmp_path: Path, fake_judge: Any) -> None:
    agent = Words("fast=2.0 ")
    first = played(tmp_path, fake_judge, agent, "L1/19")
    again = played(tmp_path, fake_judge, agent, "L1/19", "L1/20")
    assert agent.episodes == 2
    assert again[0].skipped
    assert not again[1].skipped
    assert (again[0].best, again[0].total_reward) == (first[0].best, first[0].total_reward)
    known = runs.read_plan(tmp_path)
    assert known is not None
    assert known.tasks == ("L1/19", "L1/20")


def test_an_episode_cut_short_is_played_again(tmp_path: Path, fake_judge: Any) -> None:
    def stop(info: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        played(tmp_path, fake_judge, Words("wrong!", "fast=2.0 "), "L1/19", on_turn=stop)
    [result] = played(tmp_path, fake_judge, Words("wrong!", "fast=2.0 "), "L1/19")
    assert not result.skipped
    assert result.solved
    assert [one.finished for one in traces.read(tmp_path / "trace.jsonl")] == [False, True]


def test_a_fault_costs_one_task_only(tmp_path: Path, fake_judge: Any) -> None:
    class FaultOnFirst(Words):
        def reset(self, info: dict[str, Any]) -> None:
            super().reset(info)
            self.left = ["fault!" if info["task_id"] == "L1/19" else "fast=2.0 "]

    results = played(tmp_path, fake_judge, FaultOnFirst(), "L1/19", "L1/20")
    assert results[0].fault == "the compiler is missing"
    assert results[1].solved


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path, fake_judge: Any) -> None:
    played(tmp_path / "run", fake_judge, Words("wrong!"), "L1/19")
    other = dataclasses.replace(plan("L1/19"), max_turns=3)
    with pytest.raises(UsageError, match="expected max_turns 8, got 3"):
        runs.play(other, [tasks.get("L1/19")], Words(), tmp_path / "run", judge=fake_judge)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    with pytest.raises(UsageError, match="expected a new folder"):
        played(tmp_path / "mine", fake_judge, Words(), "L1/19")
    (tmp_path / "run" / "run.json").write_text("{}")
    with pytest.raises(RecordError, match="expected a run's plan"):
        runs.read_plan(tmp_path / "run")


def test_callbacks_tell_what_happened(tmp_path: Path, fake_judge: Any) -> None:
    said: list[Any] = []
    played(
        tmp_path,
        fake_judge,
        Words("wrong!", "wrong!", "fast=2.0 "),
        "L1/19",
        on_start=lambda task: said.append(task.id),
        on_action=lambda text: said.append(text.split("\n")[0]),
        on_turn=lambda info: said.append((info["changed"], info["judged"])),
        on_end=lambda result: said.append(result.turns),
    )
    write = "```python model_new.py"
    turns = [write, (True, True), write, (False, True), write, (True, True)]
    assert said == ["L1/19", *turns, "submit", (False, False), 4]


@pytest.fixture
def command(tmp_path: Path, fake_judge: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs `kernelgym run` with an agent of this file and the fake judge."""
    monkeypatch.setattr("kernelgym.judging.LazyJudge", lambda config: fake_judge)

    def call(agent: Agent, *arguments: str) -> Any:
        monkeypatch.setattr(agents, "get", lambda name, **kwargs: agent, raising=False)
        options = ["run", "--agent", "words", "--out", str(tmp_path / "run"), "--device", "cpu"]
        return CliRunner().invoke(app, [*options, *arguments])

    return call


def test_run_prints_plain_lines_and_ends_with_whether_all_is_solved(
    command: Callable[..., Any], tmp_path: Path
) -> None:
    result = command(Words("wrong!", "fast=2.0 "), "--task", "L1/19,L1/20")
    assert result.exit_code == Exit.CORRECT, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "L1/19\t3\t2\tcorrect, 2.00x eager, 1.00x compile"
    assert lines[2] == "solved 2 of 2"
    assert lines[3] == ("all tasks: 2 of 2 correct, 2 faster than eager, geometric mean 2.00x")
    assert "(1/2) L1/19 ReLU, turn 1: incorrect (test.incorrect)" in result.stderr
    again = command(Words("wrong!"), "--task", "L1/19,L1/21")
    assert again.exit_code == Exit.NO
    assert "finished before" in again.stderr
    assert "solved 1 of 2" in again.stdout.splitlines()
    page = CliRunner().invoke(app, ["report", str(tmp_path / "run")])
    assert page.exit_code == 0
    assert Path(page.stdout.strip()).read_text().startswith("<!doctype html>")


def test_run_says_what_is_wrong_with_its_options(command: Callable[..., Any]) -> None:
    for arguments in (
        ["--task", " , "],
        ["--task", "L1/19", "--agent-args", "[]"],
        ["--task", "L1/19", "--agent-args", "{"],
        ["--task", "L1/19", "--reward", "fame"],
        ["--task", "L1/19", "--max-turns", "1"],
    ):
        assert command(Words(), *arguments).exit_code == Exit.USAGE


def test_a_fault_of_the_harness_is_told_apart(command: Callable[..., Any]) -> None:
    result = command(Words("fault!"), "--task", "L1/19")
    assert result.exit_code == Exit.FAULT
    assert "fault: the compiler is missing" in result.stdout


def test_a_level_is_all_of_its_tasks(
    command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tasks, "ids", lambda level: (f"L{level}/1", f"L{level}/2"))
    command(Words("fast=2.0 "), "--task", "L1,L1/1")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["tasks"] == ["L1/1", "L1/2"]


def test_an_agent_that_raises_costs_its_task_only(
    command: Callable[..., Any], tmp_path: Path
) -> None:
    class RaisesOnFirst(Words):
        def __call__(self, observation: Any, info: dict[str, Any]) -> Any:
            if info["task_id"] == "L1/19":
                raise ValueError("no [such]\nword")
            return 5 if info["task_id"] == "L1/20" else super().__call__(observation, info)

    result = command(RaisesOnFirst("fast=2.0 "), "--task", "L1/19,L1/20,L1/21")
    assert result.exit_code == Exit.AGENT, result.output
    [said] = [line for line in result.stderr.splitlines() if "(1/3) L1/19: " in line]
    assert "words: the agent failed: turn 1: ValueError: no [such] word (test_cli_run.py:" in said
    assert "L1/20: words: the agent failed: turn 1: expected a str, got int" in result.stderr
    assert result.stdout.splitlines()[3] == "solved 1 of 3"
    again = command(Words("fast=2.0 "), "--task", "L1/19,L1/20,L1/21")
    assert again.exit_code == Exit.CORRECT
    assert again.stderr.count("finished before") == 1


def test_a_folder_that_cannot_be_written_is_a_wrong_call(tmp_path: Path, fake_judge: Any) -> None:
    (tmp_path / "file").write_text("")
    place = tmp_path / "file" / "run"
    with pytest.raises(UsageError, match=f"cannot write {place}: Not a directory"):
        played(place, fake_judge, Words(), "L1/19")
