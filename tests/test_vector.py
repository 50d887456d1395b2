from __future__ import annotations

import threading

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import kernelgym
from kernelgym.config import JudgeConfig
from kernelgym.edits import WriteFile, render
from kernelgym.errors import ConfigError, UsageError
from kernelgym.vector import KernelVectorEnv


def write(text: str) -> str:
    return render(WriteFile("model_new.py", text))


@pytest.fixture
def envs(fake_judge, fake_tasks):
    return kernelgym.make_vec(
        "Kernel-v0", 3, task=fake_tasks, judge=fake_judge, max_turns=3, render_mode="ansi"
    )


def test_make_vec_is_also_gymnasiums_default(fake_judge, fake_task):
    envs = gym.make_vec("Kernel-v0", num_envs=2, task=fake_task, judge=fake_judge)
    assert isinstance(envs, KernelVectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert envs.num_envs == 2
    assert envs.spec.id == "Kernel-v0"
    with pytest.raises(
        ConfigError, match=r"expected one of KernelBench-L1-v0, .* got 'CartPole-v1'"
    ):
        kernelgym.make_vec("CartPole-v1", 2)


def test_batches_are_in_the_batched_spaces(envs):
    observations, infos = envs.reset(seed=0)
    assert observations in envs.observation_space
    assert observations["speedup"].shape == (3, 2, 3)
    assert len(observations["task"]) == 3
    assert infos["_task_id"].all()
    envs.action_space.seed(1)
    for _ in range(12):
        actions = envs.action_space.sample()
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        assert observations in envs.observation_space
        assert rewards.shape == terminated.shape == truncated.shape == (3,)


def test_each_slot_gets_what_it_would_get_alone(envs, make_env, fake_tasks):
    _, infos = envs.reset(seed=[4, 5, 6])
    alone = [make_env(task=fake_tasks, max_turns=3) for _ in range(3)]
    assert [env.reset(seed=4 + i)[1]["task_id"] for i, env in enumerate(alone)] == list(
        infos["task_id"]
    )
    actions = [write("fast=2"), "junk", write("wrong!")]
    observations, rewards, *_ = envs.step(actions)
    for index, env in enumerate(alone):
        observation, reward, *_ = env.step(actions[index])
        assert rewards[index] == reward
        assert observations["feedback"][index] == observation["feedback"]
        np.testing.assert_array_equal(observations["counters"][index], observation["counters"])


def test_an_episode_that_ends_starts_anew_in_the_same_step(envs):
    envs.reset(seed=0)
    observations, rewards, terminated, truncated, infos = envs.step(
        ["submit", write("fast=2"), "junk"]
    )
    assert list(terminated) == [True, False, False]
    assert rewards[0] == -1
    assert list(observations["turn"]) == [0, 1, 1]
    assert list(infos["_final_obs"]) == [True, False, False]
    assert infos["final_obs"][0]["turn"] == 1
    assert infos["final_info"]["turn"][0] == 1
    assert infos["verdict"][1].correct
    _, _, terminated, truncated, _ = envs.step(["junk"] * 3)
    assert not (terminated | truncated).any()
    _, _, terminated, truncated, _ = envs.step(["junk"] * 3)
    assert list(truncated) == [False, True, True]


def test_a_fault_truncates_its_slot_and_no_other(envs):
    envs.reset(seed=0)
    observations, rewards, terminated, truncated, infos = envs.step(
        [write("fast=2"), write("fault!"), write("wrong!")]
    )
    assert list(truncated) == [False, True, False]
    assert not terminated.any()
    assert list(rewards) == [2.0, 0.0, -1.0]
    assert infos["fault"][1] == "the compiler is missing"
    assert list(infos["_fault"]) == [False, True, False]
    assert list(observations["turn"]) == [1, 0, 1]
    assert observations in envs.observation_space


def test_a_batch_is_judged_side_by_side(fake_judge, fake_task):
    meeting = threading.Barrier(3, timeout=10)
    evaluate = fake_judge.evaluate

    def meet(task, workspace):
        meeting.wait()  # breaks unless all three are being judged at once
        return evaluate(task, workspace)

    fake_judge.evaluate = meet
    envs = KernelVectorEnv(3, task=fake_task, judge=fake_judge, workers=3)
    envs.reset()
    _, rewards, *_ = envs.step([write("fast=2"), write("wrong!"), write("fast=9")])
    assert list(rewards) == [2.0, -1.0, 3.0]


def test_a_judge_that_judges_batches_gets_the_whole_batch(fake_judge, fake_task):
    batches = []

    def evaluate_many(jobs, *, workers=None):
        batches.append((len(jobs), workers))
        return [fake_judge.evaluate(*job) for job in jobs]

    fake_judge.evaluate_many = evaluate_many
    envs = KernelVectorEnv(3, task=fake_task, judge=fake_judge, workers=2)
    envs.reset()
    _, rewards, *_ = envs.step([write("fast=2"), "junk", write("fast=9")])
    assert list(rewards) == [2.0, -0.1, 3.0]
    assert batches == [(2, 2)]


def test_a_pool_is_made_on_the_devices_that_are_named(fake_task, monkeypatch):
    made = []

    class Pool:
        def __init__(self, config, **arguments):
            made.append(arguments)
            self.size = "full"

        def close(self):
            made.append("closed")

    monkeypatch.setattr("kernelgym.judge.pool.JudgePool", Pool)
    envs = KernelVectorEnv(2, task=fake_task, devices=[0, 1], workers=5, device="auto")
    assert envs.envs[0].judge.size == "full"
    assert not made  # not before it is needed
    with pytest.raises(AttributeError):
        envs.envs[0].judge.evaluate_many([])
    envs.close()
    assert made == [{"devices": [0, 1], "workers": 5}, "closed"]


def test_rendering_and_closing(envs, fake_judge):
    envs.reset()
    assert ["Task" in text for text in envs.render()] == [True] * 3
    envs.close()
    envs.close()
    assert fake_judge.closed == 0


def test_judge_fields_reach_every_slot(fake_task):
    envs = KernelVectorEnv(2, task=fake_task, config=JudgeConfig(device="cpu"), draws=2)
    assert [env.config for env in envs.envs] == [JudgeConfig(device="cpu", draws=2)] * 2
    assert envs.envs[0].judge is envs.envs[1].judge
    envs.close()


@pytest.mark.parametrize("actions", ["submit", ["submit"] * 2, ["submit"] * 4, ["a", "b", None]])
def test_a_wrong_number_of_actions_is_a_usage_error(envs, actions):
    envs.reset()
    with pytest.raises(UsageError, match="action"):
        envs.step(actions)


def test_a_wrong_number_of_seeds_is_a_usage_error(envs):
    with pytest.raises(UsageError, match="expected 3 seeds, got 2"):
        envs.reset(seed=[1, 2])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "num_envs: expected at least 1"),
        ({"num_envs": 1, "workers": 0}, "workers: expected at least 1"),
        ({"num_envs": 1, "config": JudgeConfig()}, "judge: expected no config"),
        ({"num_envs": 1, "devices": [0]}, "judge: expected no devices"),
    ],
)
def test_arguments_that_are_refused(fake_judge, fake_task, arguments, message):
    with pytest.raises(ConfigError, match=message):
        KernelVectorEnv(task=fake_task, judge=fake_judge, **arguments)
