from __future__ import annotations

import json

import pytest

from kernelgym.edits import WriteFile, render
from kernelgym.errors import RecordError
from kernelgym.runner import run_episode
from kernelgym.traces import TraceWriter, read, replay
from kernelgym.workspace import Workspace
from kernelgym.wrappers import RecordTrace

FAST = render(WriteFile("model_new.py", "# fast=2\n"))


@pytest.fixture
def recorded(make_env, tmp_path):
    path = tmp_path / "runs" / "trace.jsonl"
    env = RecordTrace(make_env(), path)
    actions = iter([FAST, "junk \ud800\0", "submit"])
    result = run_episode(env, lambda observation, info: next(actions), seed=3)
    env.close()
    return path, result


def test_what_is_written_is_read_back(recorded):
    path, result = recorded
    (episode,) = read(path)
    assert episode.finished
    assert (episode.start.task, episode.start.seed, episode.start.episode) == ("L1/19", 3, 0)
    assert episode.start.config.device == "cpu"
    assert [step.action for step in episode.steps] == [turn.action for turn in result.turns]
    assert [step.reward for step in episode.steps] == [turn.reward for turn in result.turns]
    assert episode.steps[0].verdict == result.best_verdict
    assert episode.steps[1].verdict is None
    assert "no edit found" in episode.steps[1].edit_error
    assert [step.terminated for step in episode.steps] == [False, False, True]


def test_lines_are_plain_json(recorded):
    path, _ = recorded
    kinds = [json.loads(line)["kind"] for line in path.read_text().splitlines()]
    assert kinds == ["episode", "step", "step", "step"]


def test_replay_gives_the_same_files(recorded, fake_task):
    path, result = recorded
    (episode,) = read(path)
    workspaces = replay(episode, Workspace.initial(fake_task, "small"))
    assert [one.hash for one in workspaces[1:]] == [t.workspace.hash for t in result.turns]
    with pytest.raises(RecordError, match="start: expected workspace"):
        replay(episode, Workspace({"model_new.py": "other"}))


def test_a_line_cut_short_is_left_out_and_written_over(recorded, make_env):
    path, _ = recorded
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    (episode,) = read(path)
    assert len(episode.steps) == 2
    assert not episode.finished
    env = RecordTrace(make_env(), path)
    env.reset()
    env.step("submit")
    env.close()
    first, second = read(path)
    assert (len(first.steps), len(second.steps)) == (2, 1)
    assert second.start.episode == 1
    assert second.finished


@pytest.mark.parametrize(
    "line",
    ["{", "3", "{}", '{"kind": "other"}', '{"kind": "step", "episode": 0}', "\udcff"],
)
def test_a_broken_line_is_named(recorded, line):
    path, _ = recorded
    content = path.read_bytes() + line.encode(errors="surrogateescape") + b"\n"
    path.write_bytes(content)
    with pytest.raises(RecordError, match="line 5: expected a trace record"):
        read(path)
    with pytest.raises(RecordError, match="line 5"):
        TraceWriter(path)


def test_turns_without_a_start_are_refused(recorded):
    path, _ = recorded
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    with pytest.raises(RecordError, match="expected the start of episode 0"):
        read(path)


def test_another_version_is_refused(recorded):
    path, _ = recorded
    path.write_text(path.read_text().replace('"trace_version": 1', '"trace_version": 2'))
    with pytest.raises(RecordError, match="trace_version: expected 1, got 2"):
        read(path)
