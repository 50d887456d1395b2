"""The search agent: against a scripted judge, and against the real one."""

import re

import gymnasium as gym
import pytest

import kernelgym
from kernelgym import tasks
from kernelgym.agents.kernels.program import compile_program
from kernelgym.agents.search import Search
from kernelgym.config import JudgeConfig
from kernelgym.errors import UsageError
from kernelgym.judge.verdict import Measurement, Outcome, Provenance, Timing, Verdict

from .programs import compose, source_of

TWELVE = (
    "L1/1", "L1/19", "L1/23", "L1/26", "L1/36", "L1/40", "L1/47", "L1/82",
    "L2/12", "L2/76", "L3/1", "L3/4",
)  # fmt: skip


class ScriptedJudge:
    """Gives each text the verdict that a function of its block sizes says."""

    size = "full"

    def __init__(self, answer):
        self.config = JudgeConfig(device="cpu")
        self.answer = answer
        self.blocks = []

    def evaluate(self, task, workspace):
        text = workspace.files["model_new.py"]
        block = int(re.search(r"__launch_bounds__\((\d+)\)", text).group(1))
        self.blocks.append(block)
        seconds = self.answer(block)
        time = None if seconds is None else Measurement(seconds, seconds, seconds, 0, "modelled")
        return Verdict(
            task=task.id,
            outcome=Outcome.RUNTIME_ERROR if time is None else Outcome.CORRECT,
            reason="launch.config" if time is None else "",
            message="",
            source_hash="",
            provenance=Provenance("", "", "emulator", "audited", "strict", "default", "full"),
            timing=None if time is None else Timing(time),
        )

    def close(self):
        pass


def play(tmp_path, answer, turns=20, forward="x + 1", **arguments):
    path = tmp_path / "task.py"
    path.write_text(source_of(forward, (7, 7)), encoding="utf-8")
    judge = ScriptedJudge(answer)
    env = gym.make("kernelgym:Kernel-v0", task=str(path), max_turns=turns, judge=judge)
    agent = Search(**arguments)
    return kernelgym.run_episode(env, agent), judge, agent


def test_it_climbs_to_the_fastest_and_ends_there(tmp_path):
    result, judge, _ = play(tmp_path, lambda block: {64: 2e-6}.get(block, 5e-6))
    assert result.terminated
    assert result.turns[-1].verdict.timing.candidate.median == 2e-6
    assert "__launch_bounds__(64)" in result.turns[-1].workspace.files["model_new.py"]
    assert len(set(judge.blocks)) == 5


def test_it_stops_when_nothing_gets_faster(tmp_path):
    result, judge, _ = play(tmp_path, lambda block: 1e-6, patience=2)
    assert result.terminated
    assert len(judge.blocks) == 4  # the first, two in vain, and back to the first


def test_it_repairs_what_does_not_launch(tmp_path):
    result, judge, _ = play(tmp_path, lambda block: None if block > 64 else 1e-6)
    assert judge.blocks[:2] == [256, 64]
    assert result.solved


def test_it_gives_up_on_what_it_has_no_kernel_for(tmp_path):
    result, judge, agent = play(tmp_path, lambda block: 1e-6, forward="torch.sort(x)[0]")
    assert result.terminated
    assert judge.blocks == []
    assert "sort" in agent.gave_up


def test_arguments_are_checked():
    with pytest.raises(UsageError, match="patience"):
        Search(patience=0)


@pytest.mark.parametrize("task", ["L2/76"])
def test_a_task_end_to_end(judge, task):
    env = gym.make("kernelgym:Kernel-v0", task=task, max_turns=2, judge=judge)
    result = kernelgym.run_episode(env, Search())
    assert result.solved, result.best_verdict


@pytest.mark.slow
def test_at_least_ten_of_the_first_twelve_tasks(judge):
    correct = [t for t in TWELVE if _correct(judge, tasks.get(t), tasks.get(t).source("small"))]
    assert len(correct) >= 10, set(TWELVE) - set(correct)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_at_least_24_of_40_compositions(judge, tmp_path):
    correct = 0
    for seed in range(1000, 1040):
        path = tmp_path / f"composition_{seed}.py"
        path.write_text(compose(seed), encoding="utf-8")
        correct += _correct(judge, tasks.load_file(path), compose(seed))
    assert correct >= 24


def _correct(judge, task, source):
    try:
        text = compile_program(source).render()
    except UsageError:
        return False
    return judge.evaluate(task, text).correct
