"""Advantages and losses against figures worked out by hand."""

import math

import pytest
import torch

from kernelgym.agents.training.ppo import (
    Batch,
    PpoConfig,
    advantages,
    explained_variance,
    policy_loss,
    token_mean,
)
from kernelgym.agents.training.rollout import Episode
from kernelgym.errors import ConfigError


def episode(task, turns, rewards, logp=-1.0):
    """Two prompt tokens, then two words a turn with one token of feedback between turns."""
    made = Episode(task, [0, 0])
    for turn in range(turns):
        for _ in range(2):
            made.actions.append(len(made.ids))
            made.turns.append(turn)
            made.logps.append(logp)
            made.ids.append(1)
        if turn < turns - 1:
            made.ids.append(2)
    made.rewards = list(rewards)
    return made


def test_rewards_are_paid_at_a_turns_last_word():
    batch = Batch.of([episode(0, 2, (1.0, 2.0)), episode(1, 1, (5.0,))])
    assert batch.rewards.tolist() == [[0, 0, 0, 1, 0, 0, 2], [0, 0, 0, 5, 0, 0, 0]]
    assert batch.said.int().tolist() == [[0, 0, 1, 1, 0, 1, 1], [0, 0, 1, 1, 0, 0, 0]]


def test_gae_is_that_of_the_definition():
    batch = Batch.of([episode(0, 2, (1.0, 2.0))])
    values = torch.tensor([[9.0, 9.0, 0.5, 0.4, 9.0, 0.3, 0.2]]) * batch.said
    advantage, targets = advantages(batch, PpoConfig(gamma=1.0, lam=0.95), values)
    deltas = [0.4 - 0.5, 1 + 0.3 - 0.4, 0.2 - 0.3, 2 - 0.2]
    expected = []
    later = 0.0
    for delta in reversed(deltas):
        later = delta + 0.95 * later
        expected.insert(0, later)
    got = advantage[batch.said]
    assert got.tolist() == pytest.approx(expected, rel=1e-5)
    assert targets[batch.said].tolist() == pytest.approx(
        [a + v for a, v in zip(expected, (0.5, 0.4, 0.3, 0.2), strict=True)], rel=1e-5
    )
    with pytest.raises(ConfigError, match="values"):
        advantages(batch, PpoConfig())


def test_grpo_compares_within_a_task():
    episodes = [episode(0, 1, (1.0,)), episode(0, 1, (3.0,)), episode(1, 1, (7.0,))]
    advantage, _ = advantages(Batch.of(episodes), PpoConfig(advantage="grpo"))
    assert advantage[:, 3].tolist() == pytest.approx([-1, 1, 0], abs=1e-4)


def test_trloo_leaves_each_trajectory_out_of_its_own_mean():
    episodes = [episode(0, 2, r) for r in ((1.0, 2.0), (0.0, 1.0), (0.0, 5.0))]
    episodes.append(episode(0, 1, (4.0,)))
    advantage, returns = advantages(Batch.of(episodes), PpoConfig(advantage="trloo"))
    assert returns[:, 2].tolist() == [3, 1, 5, 4]
    others = [(1 + 5 + 4) / 3, (3 + 5 + 4) / 3, (3 + 1 + 4) / 3, (3 + 1 + 5) / 3]
    expected = [g - o for g, o in zip((3, 1, 5, 4), others, strict=True)]
    assert advantage[:, 2].tolist() == pytest.approx(expected, rel=1e-5)
    second = [2 - (1 + 5) / 2, 1 - (2 + 5) / 2, 5 - (2 + 1) / 2]
    assert advantage[:3, 6].tolist() == pytest.approx(second, rel=1e-5)


def test_long_trajectories_weigh_no_more_than_short_ones():
    said = torch.tensor([[True] * 4, [True, False, False, False]])
    values = torch.tensor([[1.0] * 4, [3.0, 9.0, 9.0, 9.0]])
    assert token_mean(values, said).item() == 2.0


@pytest.mark.parametrize(
    ("ratio", "advantage", "gain"),
    [(1.5, 1.0, 1.28), (1.5, -1.0, -1.5), (0.5, 1.0, 0.5), (0.5, -1.0, -0.8), (1.1, 2.0, 2.2)],
)
def test_the_ratio_is_clipped_on_the_side_that_would_go_too_far(ratio, advantage, gain):
    batch = Batch.of([episode(0, 1, (1.0,))])
    logps = (batch.old_logps + math.log(ratio)) * batch.said
    loss, watched = policy_loss(logps, batch, advantage * batch.said, PpoConfig())
    assert loss.item() == pytest.approx(-gain, rel=1e-5)
    assert watched["clipped"] == float(not 0.8 <= ratio <= 1.28)


def test_trajectories_that_player_and_learner_disagree_on_are_left_out():
    batch = Batch.of([episode(0, 1, (1.0,)), episode(1, 1, (1.0,))])
    logps = batch.old_logps.clone()
    logps[1] += 0.01 * batch.said[1]
    loss, watched = policy_loss(logps, batch, batch.said.float(), PpoConfig(mismatch=0.001))
    assert loss.item() == pytest.approx(-0.5)
    assert watched["rejected"] == 0.5
    assert watched["mismatch"] == pytest.approx(math.exp(0.01) - 1, rel=1e-3)


def test_explained_variance():
    said = torch.tensor([[True, True, False]])
    targets = torch.tensor([[1.0, 3.0, 50.0]])
    assert explained_variance(targets, targets, said) == 1.0
    assert explained_variance(torch.zeros(1, 3), targets, said) == 0.0
    assert explained_variance(-targets, targets, said) == -3.0


def test_what_cannot_be_is_refused():
    with pytest.raises(ConfigError, match="gae, grpo, trloo"):
        PpoConfig(advantage="none")
    with pytest.raises(ConfigError, match="gamma"):
        PpoConfig(gamma=2.0)
