"""Knobs as actions, numbers as observations, and a policy that learns what is fast."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sb3_contrib")

from stable_baselines3.common.env_checker import check_env

from kernelgym.agents.kernels.program import compile_program
from kernelgym.agents.sb3_ppo import SB3PPO, TrainArguments, make_training_env, train
from kernelgym.agents.sb3_wrappers import (
    MAX_CHOICES,
    MAX_KNOBS,
    SIZE,
    KnobGame,
    RememberingJudge,
)
from kernelgym.edits import parse
from kernelgym.errors import UsageError
from kernelgym.evaluation import evaluate_agent
from kernelgym.judge.verdict import Outcome, Verdict
from tests.conftest import SOURCE, FakeJudge, verdict_of


class ByBlock(FakeJudge):
    """The larger the block, the faster; one of 64 is wrong."""

    def evaluate(self, task: Any, workspace: Any) -> Verdict:
        self.judged.append(task.id)
        text = workspace.files["model_new.py"]
        found = re.search(r"<<<\s*\d+\s*,\s*(\d+)", text)
        block = int(found[1]) if found else 0
        if block in (0, 64):
            return verdict_of(Outcome.INCORRECT)
        speed = block / 256
        return verdict_of(eager=(speed, speed, speed), source_hash=workspace.hash)


def test_a_game_offers_the_knobs_that_there_are(make_env: Any) -> None:
    program = compile_program(SOURCE)
    game = KnobGame(program, 4)
    mask = game.mask().reshape(MAX_KNOBS, MAX_CHOICES)
    counts = [len(knob.choices) for knob in program.knobs().values()]
    assert mask.sum(axis=1).tolist() == counts + [1] * (MAX_KNOBS - len(counts))
    texts = {game.text(np.full(MAX_KNOBS, pick)) for pick in range(3)}
    assert len(texts) == 3
    assert all("<<<" in parse(text).edits[0].text for text in texts)  # type: ignore[union-attr]
    # A choice beyond the last is the last.
    assert game.text(np.full(MAX_KNOBS, MAX_CHOICES - 1))


def test_what_is_seen_tells_choices_and_results_apart() -> None:
    env = make_training_env(["L1/19"], 4, ByBlock())
    start, _ = env.reset(seed=0)
    slow, *_ = env.step(np.array([1] * MAX_KNOBS))
    fast, _, _, _, info = env.step(np.array([4] * MAX_KNOBS))
    assert info["verdict"].correct
    assert start.shape == slow.shape == fast.shape == (SIZE,)
    assert len({seen.tobytes() for seen in (start, slow, fast)}) == 3
    assert fast in env.observation_space


def test_the_environment_is_one_of_gymnasiums() -> None:
    check_env(make_training_env(["L1/19"], 3, ByBlock()), warn=False)


def test_a_policy_learns_what_is_fast(tmp_path: Path) -> None:
    judge = RememberingJudge(ByBlock())
    told = TrainArguments(("L1/19",), steps=384, turns=2, seed=1, rollout=64, learning_rate=3e-3)
    policy = train(told, judge)
    assert judge.asked == 384
    assert judge.judged <= 20  # no choice is judged twice
    path = tmp_path / "policy.zip"
    with path.open("wb") as file:
        policy.save(file)

    def first(agent: SB3PPO, name: str) -> float:
        found = evaluate_agent(agent, ["L1/19"], 1, out=tmp_path / name, judge=judge)
        best = found.tasks[0].best
        return best.timing.speedup_eager.value if best and best.timing else 0.0  # type: ignore[union-attr]

    trained = SB3PPO(model=str(path), greedy=True, turns=2)
    assert first(trained, "trained") == 4.0  # 1,024 threads, the fastest


def test_an_agent_is_kept_in_a_file(tmp_path: Path, make_env: Any) -> None:
    agent = SB3PPO(seed=5)
    agent.save(tmp_path / "agent")
    other = SB3PPO(model=str(tmp_path / "agent"), seed=5)
    observation, info = make_env().reset()
    agent.reset(info)
    assert agent(observation, info) == other(observation, info)
    (tmp_path / "junk").write_text("junk")
    with pytest.raises(UsageError, match="expected a policy"):
        SB3PPO(model=str(tmp_path / "junk"))


def test_without_kernels_it_gives_up(make_env: Any) -> None:
    agent = SB3PPO()
    observation, info = make_env().reset()
    agent.reset(info)
    source = SOURCE.replace("torch.relu(x)", "torch.sort(x)[0]")
    assert agent({**observation, "task": source}, info) == "submit\n"
    assert "sort" in agent.gave_up


def test_each_verdict_is_a_record_of_its_own(fake_task: Any, make_env: Any) -> None:
    judge = RememberingJudge(ByBlock())
    env = make_env()
    env.reset()
    workspace = env.reset()[1]["workspace"]
    first, second = (judge.evaluate(fake_task, workspace) for _ in range(2))
    assert first == second
    assert first is not second
    assert (judge.asked, judge.judged) == (2, 1)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ppo_beats_random_on_the_emulator(tmp_path: Path) -> None:
    from benchmarks.ppo_against_random import main

    out = tmp_path / "ppo.json"
    main(["--json", str(out), "--unseen", "0"])
    for row in json.loads(out.read_text())["seeds"]:
        assert row["trained_ppo"]["best"] > row["trained_random"]["best"]
        assert row["trained_ppo"]["first"] > row["trained_random"]["first"]
