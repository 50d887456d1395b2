from __future__ import annotations

import subprocess
import sys
import time
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

import kernelgym
from kernelgym.config import JudgeConfig
from kernelgym.edits import Submit, WriteFile, render
from kernelgym.env import EDIT_PENALTY, KernelEnv
from kernelgym.errors import ConfigError, EnvironmentFault, UsageError
from kernelgym.judge.verdict import Outcome
from kernelgym.registration import ENV_IDS


def write(text: str, *more) -> str:
    return render(WriteFile("model_new.py", text), *more)


@pytest.mark.parametrize("env_id", sorted(ENV_IDS))
def test_gymnasium_finds_nothing_to_complain_about(env_id, fake_judge, fake_tasks, monkeypatch):
    monkeypatch.setattr("kernelgym.synthetic._made", lambda count, seed, split: fake_tasks)
    chosen = {} if env_id == "KernelSynth-v0" else {"task": fake_tasks}
    env = gym.make(env_id, judge=fake_judge, render_mode="ansi", **chosen)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_the_ids_of_levels_pick_tasks_of_theirs(level, fake_judge):
    catalogue = pytest.importorskip("kernelgym.tasks.catalogue")
    env = gym.make(f"KernelBench-L{level}-v0", judge=fake_judge)
    picked = {env.reset(seed=seed)[1]["task_id"] for seed in range(10)}
    assert len(picked) > 1
    assert picked <= set(catalogue.ids(level))


def test_a_task_may_be_an_id_or_a_path(fake_judge, fake_task, tmp_path):
    pytest.importorskip("kernelgym.tasks.catalogue")
    (tmp_path / "mine.py").write_text(fake_task.source("small"))
    env = KernelEnv("L1/19", judge=fake_judge)
    observation, info = env.reset()
    assert info["task_id"] == "L1/19"
    assert "class Model(" in observation["task"]
    for path in (tmp_path / "mine.py", str(tmp_path / "mine.py")):
        assert env.reset(options={"task": path})[1]["task_id"] == "mine"


def test_importing_registers_and_does_nothing_else():
    code = (
        "import sys, gymnasium; before = set(sys.modules); import kernelgym;"
        "new = {m.split('.')[0] for m in set(sys.modules) - before};"
        "assert new == {'kernelgym'}, new;"
        "assert 'kernelgym.env' not in sys.modules;"
        "assert 'Kernel-v0' in gymnasium.registry;"
        "import kernelgym.env; assert 'torch' not in sys.modules;"
        "assert kernelgym.Verdict.__name__ == 'Verdict'"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_public_names():
    assert kernelgym.__all__ == sorted(kernelgym.__all__)
    assert set(kernelgym.__all__) <= set(dir(kernelgym))
    assert kernelgym.JudgeConfig is JudgeConfig
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = kernelgym.nonsense


def test_the_start(make_env, fake_judge):
    env = make_env()
    observation, info = env.reset(seed=0)
    assert observation in env.observation_space
    assert "class Model(nn.Module)" in observation["task"]
    assert "class ModelNew(nn.Module)" in observation["workspace"]
    assert (observation["outcome"], observation["turn"]) == (0, 0)
    assert info["verdict"] is None
    assert fake_judge.judged == []


def test_an_episode(make_env):
    env = make_env(max_turns=6)
    env.reset()
    _, reward, *_, info = env.step(write("syntax!"))
    assert (reward, info["verdict"].outcome) == (-1.0, Outcome.COMPILE_ERROR)
    observation, reward, *_, info = env.step(write("fast=1.2"))
    assert reward == 3.0  # from -1 to 2: faster than eager, not than compile
    assert info["reward_parts"] == {"verdict": 3.0, "edit": 0.0, "end": 0.0}
    assert "Speedup against eager: 1.200x" in observation["feedback"]
    best = info["verdict"]
    observation, reward, *_, info = env.step(write("wrong!"))
    assert (reward, info["verdict"].outcome) == (0.0, Outcome.INCORRECT)
    assert info["best_verdict"] is best
    assert "Best so far: correct, 1.20x eager" in observation["feedback"]
    assert observation["turn"] == 3
    observation, reward, terminated, truncated, info = env.step("submit")
    assert (reward, terminated, truncated) == (0.0, True, False)
    assert info["best_verdict"] is best
    assert observation["outcome"] == 1 + list(Outcome).index(Outcome.INCORRECT)


def test_an_edit_that_does_not_apply_costs_and_says_why(make_env, fake_judge):
    env = make_env()
    before, _ = env.reset()
    observation, reward, terminated, truncated, info = env.step("```python ../x.py\n```")
    assert (reward, terminated, truncated) == (EDIT_PENALTY, False, False)
    assert info["verdict"] is None
    assert "inside the workspace" in info["edit_error"]
    assert info["edit_error"] in observation["feedback"]
    assert observation["workspace"] == before["workspace"]
    assert observation["turn"] == 1
    assert fake_judge.judged == []


def test_submitting_with_edits_judges_them_once(make_env, fake_judge):
    env = make_env()
    env.reset()
    _, reward, terminated, _, info = env.step(write("fast=9", Submit()))
    assert (reward, terminated, info["verdict"].correct) == (3.0, True, True)
    env.reset()
    env.step(write("fast=9"))
    env.step(write("fast=9", Submit()))  # changes nothing: the last verdict stands
    assert len(fake_judge.judged) == 2


def test_stopping_without_a_verdict_is_worth_what_no_kernel_is_worth(make_env):
    env = make_env(max_turns=2)
    env.reset()
    assert env.step("submit")[1] == -1.0
    env.reset()
    assert env.step("junk")[1] == EDIT_PENALTY
    _, reward, terminated, truncated, info = env.step("junk")
    assert reward == EDIT_PENALTY - 1.0
    assert (terminated, truncated) == (False, True)
    assert info["reward_parts"] == {"verdict": 0.0, "edit": EDIT_PENALTY, "end": -1.0}


def test_terminal_rewards_pay_the_best_at_the_end(make_env):
    env = make_env(reward_mode="terminal", max_turns=3)
    env.reset()
    assert [env.step(write(text))[1] for text in ("fast=9", "wrong!", "syntax!")] == [0, 0, 3.0]


@pytest.mark.parametrize("reward", ["milestone", "kevin", "drkernel", "log_speedup"])
def test_delta_and_terminal_sum_to_the_same(make_env, reward):
    texts = ("wrong!", "fast=0.5", "fast=2", "fast=1.5")
    sums = []
    for mode in ("delta", "terminal"):
        env = make_env(reward=reward, reward_mode=mode, max_turns=4)
        env.reset()
        sums.append(sum(env.step(write(text))[1] for text in texts))
    assert sums[0] == pytest.approx(sums[1])


def test_a_fault_leaves_the_episode_as_it_was(make_env):
    env = make_env()
    before, _ = env.reset()
    with pytest.raises(EnvironmentFault, match="compiler is missing"):
        env.step(write("fault!"))
    observation, *_, info = env.step("junk")
    assert info["turn"] == 1
    assert observation["workspace"] == before["workspace"]


def test_steps_out_of_order_raise_gymnasiums_own_error(make_env):
    env = make_env(render_mode="ansi")
    for call in (lambda: env.step("submit"), env.render):
        with pytest.raises(ResetNeeded):
            call()
    env.reset()
    env.step("submit")
    with pytest.raises(ResetNeeded, match="episode is over"):
        env.step("submit")


@pytest.mark.parametrize(
    "action",
    [
        *("", "\0", "\ud800" * 99, "\u202e```python model_new.py\n\u202e\n```", "x\n" * 5_000_000),
        *(write("\u202e"), write("a\0b"), write("\ud800"), write("x" * 2_000_000)),
        *("```" * 10_000, "x" * 10_000_000),
    ],
    ids=lambda action: ascii(action[:12]),
)
def test_step_survives_any_text(make_env, action):
    env = make_env()
    env.reset()
    assert action in env.action_space
    observation, reward, *_ = env.step(action)
    assert observation in env.observation_space
    assert np.isfinite(reward)


@pytest.mark.parametrize("action", [None, 3, b"submit", ["submit"]])
def test_what_is_no_text_is_a_usage_error(make_env, action):
    env = make_env()
    env.reset()
    with pytest.raises(UsageError, match="action: expected a str, got"):
        env.step(action)


def test_500_random_edits_stay_in_the_spaces(make_env, fake_tasks):
    env = make_env(task=fake_tasks)
    env.action_space.seed(7)
    observation, info = env.reset(seed=7)
    seen = {info["task_id"]}
    outcomes = set()
    for _ in range(500):
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert observation in env.observation_space
        assert -1.2 <= reward <= 4.0
        outcomes.add(int(observation["outcome"]))
        if terminated or truncated:
            observation, info = env.reset()
            seen.add(info["task_id"])
    assert seen == {task.id for task in fake_tasks}
    assert len(outcomes) > 1


def test_observations_are_fresh(make_env):
    env = make_env()
    first, _ = env.reset()
    second, *_ = env.step(write("fast=2"))
    for name in ("speedup", "runtime", "timing_mask", "counters", "counters_mask"):
        assert not np.shares_memory(first[name], second[name])
    second["speedup"][:] = 7
    third, *_ = env.step("junk")
    assert third["speedup"][0, 0] == 2


def test_the_seed_picks_the_task_and_options_override_it(make_env, fake_tasks):
    env = make_env(task=fake_tasks)
    picked = [env.reset(seed=seed)[1]["task_id"] for seed in range(12)]
    assert picked == [env.reset(seed=seed)[1]["task_id"] for seed in range(12)]
    assert len(set(picked)) == 3
    assert env.reset(seed=0, options={"task": fake_tasks[2]})[1]["task_id"] == "L2/76"
    with pytest.raises(UsageError, match="expected 'task', got 'tsk'"):
        env.reset(options={"tsk": 1})


def test_two_processes_with_one_seed_say_the_same():
    code = (
        "import sys, hashlib; sys.path.insert(0, sys.argv[1]);"
        "from conftest import *; task = FakeTask();"
        "env = KernelEnv((task, FakeTask('L1/23')), judge=FakeJudge());"
        "env.action_space.seed(3); texts = [env.reset(seed=3)[0]['task']]\n"
        "for _ in range(40):\n"
        "    o, r, a, b, i = env.step(env.action_space.sample())\n"
        "    texts.append(ascii((o['workspace'], o['feedback'], r)))\n"
        "    if a or b: texts.append(env.reset()[0]['task'])\n"
        "print(hashlib.sha256(''.join(texts).encode()).hexdigest())"
    )
    from pathlib import Path

    runs = [
        subprocess.run(
            [sys.executable, "-c", code, str(Path(__file__).parent)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    assert len(runs[0].strip()) == 64


def test_closing_twice_leaves_a_shared_judge_open(make_env, fake_judge):
    env = make_env()
    env.close()
    env.close()
    assert fake_judge.closed == 0


def test_the_environments_own_judge_is_made_late_and_closed(monkeypatch, fake_task, fake_judge):
    made = []

    def make(config):
        made.append(config)
        return fake_judge

    monkeypatch.setitem(
        sys.modules, "kernelgym.judge.judge", type("module", (), {"Judge": staticmethod(make)})
    )
    env = KernelEnv(fake_task, device="cpu", draws=2)
    env.reset()
    env.step("junk")
    assert made == []
    env.step(write("fast=2"))
    env.step(write("fast=3"))
    assert made == [JudgeConfig(device="cpu", draws=2)]
    env.close()
    env.close()
    assert fake_judge.closed == 1


@pytest.mark.parametrize(
    ("arguments", "size"),
    [({"device": "cpu"}, "small"), ({"device": "cuda:1"}, "full"), ({"size": "medium"}, "medium")],
)
def test_the_agent_is_shown_the_shapes_that_are_judged(fake_task, arguments, size):
    env = KernelEnv(fake_task, **arguments)
    assert f"at {size}" in env.reset()[0]["task"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_turns": 1}, "max_turns: expected at least 2, got 1"),
        ({"reward": "gold"}, "reward: expected one of"),
        ({"reward_mode": "never"}, "reward_mode: expected one of delta, terminal, got 'never'"),
        ({"render_mode": "rgb_array"}, "render_mode: expected None or one of ansi, human"),
        ({"draws": 3}, "judge: expected no config beside it"),
        ({"judge": None, "drawz": 3}, "got 'drawz' .did you mean 'draws'"),
        ({"max_turn": 3}, "got 'max_turn' .did you mean 'max_turns'"),
        ({"task": None}, "task: expected a task id, a level, a path or a Task, got none"),
        ({"judge": None, "device": "tpu"}, "device: expected"),
        ({"task": ()}, "task: expected at least one task, got none"),
    ],
)
def test_arguments_that_are_refused(make_env, arguments, message):
    with pytest.raises(ConfigError, match=message):
        make_env(**arguments)


def test_ansi_is_what_an_agent_is_shown(make_env):
    env = make_env(render_mode="ansi")
    env.reset()
    env.step(write("syntax!"))
    text = env.render()
    for part in ("Task L1/19: ReLU", "syntax!", "model_new.py:3:7: error: expected ';'", "Turns"):
        assert part in text


def test_human_prints_a_panel(make_env, capsys):
    env = make_env(render_mode="human")
    env.reset()
    env.step(write("syntax!"))
    assert env.render() is None
    printed = capsys.readouterr().out
    assert "L1/19 ReLU, turn 1 of 8" in printed
    assert "error: expected ';'" in printed


def test_human_survives_what_cannot_be_printed(make_env, capsys):
    env = make_env(render_mode="human")
    env.reset()
    _, *_, info = env.step("```\ud800\x1b[2J\nnever closed")
    assert "never closed" in info["edit_error"]
    assert "\x1b" not in capsys.readouterr().out


def test_the_environment_itself_takes_no_time(make_env):
    env = make_env(max_turns=1000)
    env.reset()
    action = write("fast=2\n" + "x = 1\n" * 300)
    env.step(action)
    times = []
    for _ in range(100):
        started = time.perf_counter()
        env.step(action)
        times.append(time.perf_counter() - started)
    assert np.median(times) < 5e-3  # benchmarks/bench_step_overhead.py measures: below 1 ms
