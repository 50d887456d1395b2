from __future__ import annotations

import pytest

from kernelgym.edits import Submit, WriteFile, render
from kernelgym.errors import AgentError, SandboxFault
from kernelgym.runner import run_episode


def test_an_agent_is_a_function(make_env):
    actions = iter(
        [
            render(WriteFile("model_new.py", "wrong!")),
            "no edit",
            render(WriteFile("model_new.py", "fast=3 "), Submit()),
        ]
    )
    result = run_episode(make_env(), lambda observation, info: next(actions))
    assert result.task_id == "L1/19"
    assert [turn.reward for turn in result.turns] == [-1.0, -0.1, 4.0]
    assert result.total_reward == pytest.approx(2.9)
    assert result.solved
    assert (result.terminated, result.truncated) == (True, False)
    assert result.turns[2].workspace.files["model_new.py"] == "fast=3 \n"


def test_an_agent_may_have_a_reset(make_env, fake_tasks):
    class Agent:
        started: tuple[str, ...] = ()

        def reset(self, info):
            self.started = (*self.started, info["task_id"])

        def __call__(self, observation, info):
            return "no edit"

    agent = Agent()
    result = run_episode(make_env(max_turns=2), agent, seed=1, options={"task": fake_tasks[1]})
    assert agent.started == ("L1/23",)
    assert len(result.turns) == 2
    assert (result.terminated, result.truncated, result.solved) == (False, True, False)
    assert result.best_verdict is None


def test_what_an_agent_raises_names_the_turn_and_the_place(make_env):
    def raises(observation, info):
        if info["turn"] == 1:
            raise KeyError("colour")
        return "no edit"

    with pytest.raises(AgentError, match=r"^turn 2: KeyError: 'colour' \(test_runner.py:\d+\)$"):
        run_episode(make_env(), raises)
    with pytest.raises(AgentError, match=r"^turn 1: expected a str, got NoneType$"):
        run_episode(make_env(), lambda observation, info: None)


def test_a_fault_that_an_agent_meets_is_not_the_agents(make_env):
    def judges(observation, info):
        raise SandboxFault("no process")

    with pytest.raises(SandboxFault, match="no process"):
        run_episode(make_env(), judges)


def test_a_result_is_short_to_read(make_env):
    result = run_episode(make_env(max_turns=2), lambda observation, info: "a long text " * 99)
    assert len(repr(result)) < 1000
    assert "'L1/19'" in repr(result)
