"""The five stages on a tape of modelled verdicts: they run, resume, and learn."""

import dataclasses
import json
import math
import random
import statistics

import pytest
import torch
from typer.testing import CliRunner

from kernelgym import KernelEnv, agents, run_episode
from kernelgym.agents.training.__main__ import app
from kernelgym.agents.training.checkpoint import Learner, load
from kernelgym.agents.training.config import (
    STAGES,
    CloneConfig,
    PlayConfig,
    ValueConfig,
    read_config,
)
from kernelgym.agents.training.evaluation import evaluate, evaluate_random
from kernelgym.agents.training.pipeline import run_all, run_stage
from kernelgym.agents.training.ppo import PpoConfig
from kernelgym.agents.training.rollout import Seat, play, play_turn
from kernelgym.agents.training.stages import shuffled, worth_keeping
from kernelgym.agents.training.tokens import encode
from kernelgym.errors import ConfigError, UsageError

from .conftest import tiny


def lines(folder):
    """A stage's log without what a clock says."""
    found = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k != "seconds"} for line in found]


def folder(out, stage):
    return out / f"{STAGES.index(stage) + 1}_{stage}"


class Killed(Exception):
    pass


def killed_at(iteration):
    def kill(line):
        if line["iteration"] == iteration:
            raise Killed

    return kill


@pytest.fixture(scope="module")
def trained(tmp_path_factory, shared):
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("trained")
    return out, run_all(tiny(), out, shared)


def test_every_stage_leaves_a_log_and_a_manifest(trained):
    out, manifests = trained
    assert [manifest.stage for manifest in manifests] == list(STAGES)
    used = [manifest.verdicts for manifest in manifests]
    assert used == sorted(used)
    assert used[0] > 0
    last = manifests[-1]
    assert last.times == last.evaluation.times == ("modelled",)
    assert last.replayed > 0
    assert last.live == 0
    assert not set(last.train) & set(last.heldout)
    assert len(last.tasks_sha256) == len(last.tape_sha256) == 64
    assert len(lines(folder(out, "agentic_ppo"))) == 4
    assert not any(line["alarms"] for line in lines(folder(out, "agentic_ppo")))


def test_imitation_and_regression_lower_their_loss(trained):
    for stage in ("sft", "rft", "value_pretraining"):
        losses = [line["loss"] for line in lines(folder(trained[0], stage))]
        assert statistics.mean(losses[-3:]) < statistics.mean(losses[:3])
    explained = [line["explained_variance"] for line in lines(folder(trained[0], STAGES[3]))]
    assert explained[-1] > explained[0]


def test_sft_is_better_than_nothing(trained, shared, config):
    learner = Learner(config.network, config.allowed, config.turns, config.seed)
    before = evaluate(learner.actor, shared.heldout, 2, 4, allowed=config.allowed, seed=0)
    assert trained[1][0].evaluation.reward > before.reward


def test_a_killed_stage_continues_to_the_same_curve(trained, tmp_path, shared, config):
    out, manifests = trained
    for stage, manifest in zip(STAGES, manifests, strict=True):
        for iteration in (1, 3):
            with pytest.raises(Killed):
                run_stage(stage, config, tmp_path, shared, killed_at(iteration))
        # A kill between the log's line and the checkpoint leaves a line too much.
        with (folder(tmp_path, stage) / "log.jsonl").open("a") as file:
            file.write('{"iteration": 4, "loss": 99}\n')
        again = run_stage(stage, config, tmp_path, shared)
        assert lines(folder(tmp_path, stage)) == lines(folder(out, stage))
        assert again.checkpoint_sha256 == manifest.checkpoint_sha256
        assert again.evaluation == manifest.evaluation


def test_a_stage_wants_the_one_before_it_and_its_own_configuration(
    trained, tmp_path, shared, config
):
    with pytest.raises(UsageError, match="expected sft to have ended"):
        run_stage("single_turn_ppo", config, tmp_path, shared)
    other = dataclasses.replace(config, seed=1)
    with pytest.raises(UsageError, match="expected seed 0, got 1"):
        run_stage("sft", other, trained[0], shared)


@pytest.mark.parametrize("advantage", ["grpo", "trloo"])
def test_stages_run_without_a_critic(tmp_path, shared, config, advantage):
    ppo = PpoConfig(advantage=advantage, lr=1e-3)
    alone = dataclasses.replace(
        config, stages=("agentic_ppo",), agentic_ppo=PlayConfig(2, 3, 4, ppo)
    )
    [manifest] = run_all(alone, tmp_path, shared)
    logged = lines(folder(tmp_path, "agentic_ppo"))
    assert manifest.verdicts == logged[-1]["verdicts"] > 0
    assert "value_loss" not in logged[0]


def test_an_episode_off_the_tape_ends_with_a_fault(shared):
    """A word that the tape's schedules never used leads off it."""
    on, off = Seat(shared.train, 0, 2), Seat(shared.train, 0, 2)
    said = [encode(("k0", block, "run")) for block in ("block=64", "block=1024")]
    play_turn([on, off], said, shared.judge)
    assert on.episode.verdicts == 1
    assert not on.over
    assert "expected a verdict on this candidate" in off.episode.fault
    assert off.over


def test_shuffling_keeps_the_rewards_and_forgets_whose_they_are(shared, config):
    learner = Learner(config.network, config.allowed, 2, 0)
    generator = torch.Generator().manual_seed(0)
    episodes = play(
        learner.actor, shared.train, [0, 1, 2, 3] * 4, 2, allowed=config.allowed,
        generator=generator,
    )  # fmt: skip
    mixed = shuffled(episodes, random.Random(1))
    assert sorted(e.total for e in mixed) == pytest.approx(sorted(e.total for e in episodes))
    assert [e.total for e in mixed] != [e.total for e in episodes]
    assert [e.ids for e in mixed] == [e.ids for e in episodes]


def test_degenerate_episodes_are_not_kept(shared, config):
    learner = Learner(config.network, config.allowed, 2, 0)
    generator = torch.Generator().manual_seed(0)
    order = list(range(len(shared.train.tasks))) * 8
    episodes = play(
        learner.actor, shared.train, order, 2, allowed=config.allowed, generator=generator
    )
    kept = [episode for episode in episodes if worth_keeping(episode, 1.0)]
    assert 0 < len(kept) < len(episodes)
    assert all(episode.total >= 1 and not episode.invalid for episode in kept)
    twice = next(e for e in episodes if e.verdicts == 2 and e.schedules[0] == e.schedules[1])
    assert not worth_keeping(dataclasses.replace(twice, rewards=[3.0], invalid=0), 1.0)


def test_the_agent_plays_a_checkpoint(trained, shared):
    checkpoint = folder(trained[0], "agentic_ppo") / "checkpoint.safetensors"
    agent = agents.get("small_policy", checkpoint=str(checkpoint), greedy=True)
    task = shared.heldout.tasks[0]
    env = KernelEnv(task, judge=shared.judge, max_turns=4)
    first, second = run_episode(env, agent), run_episode(env, agent)
    assert first.total_reward == second.total_reward
    assert first.best_verdict is not None
    assert 1 <= len(first.turns) <= 3
    with pytest.raises(UsageError, match="checkpoint"):
        agents.get("small_policy")


def test_the_agent_plays_as_in_training(trained, shared, config):
    """Greedily, word for word."""
    checkpoint = folder(trained[0], "agentic_ppo") / "checkpoint.safetensors"
    agent = agents.get("small_policy", checkpoint=str(checkpoint), greedy=True)
    tasks = range(len(shared.heldout.tasks))
    episodes = play(
        load(checkpoint).actor, shared.heldout, tasks, 2, allowed=config.allowed,
        generator=torch.Generator(), greedy=True,
    )  # fmt: skip
    for task, episode in zip(shared.heldout.tasks, episodes, strict=True):
        result = run_episode(KernelEnv(task, judge=shared.judge, max_turns=2), agent)
        assert [turn.reward for turn in result.turns] == episode.rewards


def test_the_agent_gives_up_on_what_it_cannot_schedule(trained, tmp_path, fake_judge, make_source):
    checkpoint = folder(trained[0], "sft") / "checkpoint.safetensors"
    agent = agents.get("small_policy", checkpoint=str(checkpoint))
    path = tmp_path / "task.py"
    path.write_text(make_source("torch.sort(x)[0]", (7, 7)), encoding="utf-8")
    result = run_episode(KernelEnv(str(path), judge=fake_judge), agent)
    assert result.terminated
    assert "sort" in agent.gave_up


def test_the_command_runs_a_stage(tmp_path, config):
    path = tmp_path / "training.yaml"
    path.write_text(
        f"""
tasks: {config.tasks}
tape: {config.tape}
judge: {{device: cpu, size: small, draws: 1, seed: 0}}
turns: 2
kernels: 1
assignments: [{", ".join(config.assignments)}]
network: {{width: 32, layers: 1, heads: 1, context: 64}}
stages: [single_turn_ppo]
single_turn_ppo: {{iterations: 1, tasks: 2, group: 2}}
evaluate_episodes: 1
"""
    )
    asked = ["single_turn_ppo", "--config", str(path), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    assert "single_turn_ppo: held-out reward" in done.stdout
    assert "(modelled times)" in done.stdout
    path.write_text(path.read_text().replace("group:", "groups:"))
    with pytest.raises(ConfigError, match=r"single_turn_ppo\.groups"):
        read_config(path)


SEEDS = (0, 1, 2)
T_95 = 4.303  # of Student's t with 2 degrees of freedom


def bounds(values):
    """Ends of the 95 % interval of the mean over three seeds."""
    mean, spread = statistics.mean(values), statistics.stdev(values)
    return mean - T_95 * spread / math.sqrt(3), mean + T_95 * spread / math.sqrt(3)


def full(seed, **fields):
    ppo = PpoConfig(lr=1e-3, critic_lr=2e-3)
    return tiny(
        seed=seed,
        evaluate_episodes=32,
        sft=CloneConfig(60),
        single_turn_ppo=PlayConfig(10, 14, 6, ppo),
        rft=CloneConfig(30, episodes=128, keep=2.0),
        value_pretraining=ValueConfig(30, 128),
        agentic_ppo=PlayConfig(20, 14, 6, ppo),
        **fields,
    )


def untrained_reward(shared, config):
    learner = Learner(config.network, config.allowed, config.turns, config.seed)
    return evaluate(
        learner.actor, shared.heldout, config.turns, 32, allowed=config.allowed, seed=config.seed
    ).reward


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_five_stages_learn(tmp_path, shared):
    trained, untrained, drawn = [], [], []
    for seed in SEEDS:
        config = full(seed)
        last = run_all(config, tmp_path / str(seed), shared)[-1].evaluation
        trained.append(last.reward)
        untrained.append(untrained_reward(shared, config))
        random_ones = evaluate_random(shared.heldout, 2, 32, config.assignments, seed)
        assert last.verdicts <= random_ones.verdicts
        drawn.append(random_ones.reward)
    print(f"trained {trained} untrained {untrained} random {drawn}")
    assert bounds(trained)[0] > statistics.mean(untrained)
    assert bounds(trained)[0] > statistics.mean(drawn)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_shuffled_rewards_teach_nothing(tmp_path, shared):
    stages = ("single_turn_ppo", "agentic_ppo")
    rises, real = [], []
    for seed in SEEDS:
        control = full(seed, stages=stages, shuffle_rewards=True)
        before = untrained_reward(shared, control)
        after = run_all(control, tmp_path / f"{seed}", shared)[-1].evaluation.reward
        rises.append(after - before)
        honest = full(seed, stages=stages)
        real.append(
            run_all(honest, tmp_path / f"{seed} real", shared)[-1].evaluation.reward - before
        )
    print(f"control rises by {rises}, real by {real}")
    assert bounds(rises)[0] <= 0
    assert statistics.mean(rises) < 0.2 * statistics.mean(real)
    assert bounds(real)[0] > 0
