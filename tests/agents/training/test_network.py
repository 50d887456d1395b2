import pytest
import torch

from kernelgym.agents.training.checkpoint import Learner, load, save
from kernelgym.agents.training.network import NetworkConfig, make_actor
from kernelgym.agents.training.tokens import VOCABULARY, action_ids, encode, feedback, words
from kernelgym.errors import ConfigError, RecordError, UsageError
from kernelgym.judge.verdict import Outcome

SMALL = NetworkConfig(width=32, layers=2, heads=2, context=40)


def test_the_cache_says_what_the_whole_sequence_says():
    actor = make_actor(SMALL, 0)
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(len(VOCABULARY), (3, 20), generator=generator)
    whole = actor(ids)
    cache = actor.cache(3)
    starts = torch.tensor([4, 7, 5])
    actor.extend(ids[:, :7], torch.zeros(3, dtype=torch.long), cache)  # padded behind
    for _ in range(8):
        token = ids[torch.arange(3), starts][:, None]
        out = actor.extend(token, starts, cache)[:, 0]
        assert torch.allclose(out, whole[torch.arange(3), starts], atol=1e-5)
        starts = starts + 1


def test_what_comes_later_is_not_seen():
    actor = make_actor(SMALL, 0)
    ids = torch.zeros(1, 10, dtype=torch.long)
    changed = ids.clone()
    changed[0, 6] = 5
    same = (actor(ids) == actor(changed)).all(-1)[0]
    assert same[:6].all()
    assert not same[6:].any()


def test_the_default_size_is_a_few_million_parameters():
    count = sum(p.numel() for p in make_actor(NetworkConfig(), 0).parameters())
    assert 1e6 < count < 4e6


def test_sizes_must_fit():
    with pytest.raises(ConfigError, match="whole heads"):
        NetworkConfig(width=30, heads=4)


def test_tokens_are_unique_and_come_back():
    assert len(set(VOCABULARY)) == len(VOCABULARY)
    assert words(encode(("k0", "start", "left=3"))) == ("k0", "start", "left=3")
    with pytest.raises(UsageError, match="vocabulary"):
        encode(["nothing"])
    with pytest.raises(UsageError, match="KNOB=VALUE"):
        action_ids(("start",))


def test_a_verdict_is_told_in_five_tokens(make_verdict):
    correct = make_verdict(eager=(2.0, 1.9, 2.1), compiled=(0.5, 0.4, 0.6))
    assert words(feedback(correct, 1)) == (
        "outcome=correct", "reason=none", "eager=2", "compile=-2", "left=1",
    )  # fmt: skip
    failed = make_verdict(Outcome.INCORRECT, eager=(2.0, 1.9, 2.1), reason="check.tail")
    assert words(feedback(failed, 0))[:3] == ("outcome=incorrect", "reason=check", "eager=none")
    assert words(feedback(None, 2))[0] == "outcome=invalid"


def test_a_checkpoint_comes_back_with_its_optimisers(tmp_path):
    learner = Learner(SMALL, action_ids(("block=64",), 1), 3, seed=4)
    learner.start_stage("sft", 1e-3, 1e-3)
    ids = torch.zeros(1, 4, dtype=torch.long)

    def descend(one):
        one.optimizers["actor"].zero_grad()
        one.actor(ids).square().sum().backward()
        one.optimizers["actor"].step()

    descend(learner)
    learner.state.iteration = 1
    save(learner, tmp_path / "c.safetensors")
    again = load(tmp_path / "c.safetensors", 1e-3, 1e-3)
    assert (again.state, again.language, again.turns) == (learner.state, learner.language, 3)
    descend(learner)
    descend(again)
    assert torch.equal(learner.actor(ids), again.actor(ids))


def test_what_is_no_checkpoint_is_refused(tmp_path):
    learner = Learner(SMALL, action_ids(("block=64",)), 3, seed=4)
    path = tmp_path / "c.safetensors"
    save(learner, path)
    data = path.read_bytes()
    for spoilt in (data[:-100], b"junk", data.replace(b"turns", b"turnz", 1)):
        path.write_bytes(spoilt)
        with pytest.raises(RecordError, match="expected a checkpoint"):
            load(path)
    with pytest.raises(RecordError):
        load(tmp_path / "none")
