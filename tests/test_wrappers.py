from __future__ import annotations

import gymnasium as gym
import pytest

import kernelgym  # noqa: F401 (registers the ids)
from kernelgym.errors import ConfigError
from kernelgym.traces import read
from kernelgym.wrappers import RecordTrace, TextOnly


def test_text_only_shows_one_prompt(make_env):
    env = TextOnly(make_env())
    prompt, _ = env.reset()
    assert prompt in env.observation_space
    for part in (
        "SEARCH",
        "Task L1/19: ReLU",
        "```python reference.py",
        "class ModelNew",
        "No verdict",
    ):
        assert part in prompt
    prompt, *_ = env.step("nothing")
    assert "The edit was not applied: no edit found" in prompt


def test_wrappers_can_be_made_again_from_the_spec(tmp_path, fake_task, fake_judge):
    path = tmp_path / "trace.jsonl"
    env = gym.make("Kernel-v0", task=fake_task, judge=fake_judge)
    recording = RecordTrace(TextOnly(env), path)
    spec = recording.spec
    recording.close()
    again = gym.make(spec)
    again.reset()
    again.step("submit")
    again.close()
    assert len(read(path)) == 1


def test_record_trace_wants_a_kernel_env(tmp_path):
    with pytest.raises(ConfigError, match="expected a KernelEnv, got CartPoleEnv"):
        RecordTrace(gym.make("CartPole-v1"), tmp_path / "trace.jsonl")
