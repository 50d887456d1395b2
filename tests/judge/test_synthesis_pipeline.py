"""The pipeline end to end: filters, decontamination, determinism, resumption, the environment."""

import dataclasses
import hashlib
import json
import shutil

import gymnasium as gym
import pytest
import torch

import kernelgym
from kernelgym import tasks
from kernelgym.errors import ConfigError, RecordError, TaskFormatError, UsageError
from kernelgym.judge import degenerate, synthesis
from kernelgym.judge.device_models import H200
from kernelgym.judge.physics import operator_seconds
from kernelgym.judge.synthesis_filters import Catalogue, Criteria, Filter, catalogue, examine
from kernelgym.tasks import records
from kernelgym.tasks.synthesis import syntax_tokens
from kernelgym.tasks.synthesis.composition import Composition, split_of
from kernelgym.tasks.synthesis.draft import Input
from kernelgym.tasks.synthesis.values import Layout

SEED = 26
COUNT = 6
SAMPLED = 1  # of them, by inductor
CRITERIA = Criteria(H200, inductor_share=0.1)
NOTHING = Catalogue({}, {})


def composition(*forward, features=(4096, 60)):
    """A composition on a matrix, put together by hand."""
    return Composition(
        operators=("A", "B"),
        families=("a", "b"),
        layout=Layout.MATRIX,
        options=((), ()),
        presets={"batch_size": (16, 6), "in_features": features},
        constants={},
        inputs=(Input("x", "torch.rand(batch_size, in_features)"),),
        init=(),
        forward=forward,
    )


def fate(*forward, criteria=None, known=NOTHING, features=(4096, 60)):
    criteria = criteria or Criteria(H200, compiles=False)
    return examine(0, 0, composition(*forward, features=features), criteria, known)


@pytest.fixture(scope="module")
def known():
    return catalogue()


@pytest.fixture(scope="module")
def synthesised(tmp_path_factory):
    """A small set, made by two workers, and how far it said it was.

    Beside it lies what a run killed before the last two tasks would have left.
    """
    out = tmp_path_factory.mktemp("set") / "tasks.jsonl"
    steps = []

    def progress(accepted, examined):
        steps.append((accepted, examined))
        if accepted == COUNT - 2:
            shutil.copy(out.with_name("tasks.jsonl.partial"), out.with_name("killed"))

    manifest = synthesis.synthesize(
        COUNT, SEED, out, workers=2, criteria=CRITERIA, progress=progress
    )
    return out, manifest, steps


def test_the_device_model_is_the_data_sheets():
    assert operator_seconds(H200, 0, 4.8e12) == pytest.approx(1, rel=1e-4)
    assert operator_seconds(H200, 67e12, 0) == pytest.approx(1, rel=1e-4)


@pytest.mark.parametrize(
    ("forward", "dropped"),
    [
        (("torch.relu(x)", "torch.sin(x)"), None),
        (("x.view(7, -1)",), Filter.CONSTRUCTS),
        (("x[:, : int(x.sum())]",), Filter.CONSTRUCTS),
        (("x + torch.rand_like(x)",), Filter.DETERMINISTIC),
        (("torch.relu(x - 2.0) * 0.0",), Filter.DEGENERATE),
        (("torch.softmax(x, dim=1)", "torch.sum(x, dim=1)"), Filter.DEGENERATE),
        (("torch.log(x - x)",), Filter.DEGENERATE),
        (("x",), Filter.RUNTIME),
    ],
)
def test_filters(forward, dropped):
    examined = fate(*forward)
    assert examined.dropped is dropped, examined.detail
    assert bool(examined.detail) is (dropped is not None)
    assert (examined.record is None) is (dropped is not None)


def test_what_breaks_the_graph_is_dropped():
    criteria = Criteria(H200, inductor_share=0)
    broken = "torch._dynamo.graph_break() or torch.relu(x - 0.5)"
    assert fate(broken, criteria=criteria).dropped is Filter.FULL_GRAPH
    assert fate("torch.relu(x - 0.5)", criteria=criteria).dropped is None


def test_limits_of_time_and_memory_are_kept_to():
    slow = Criteria(H200, min_seconds=1.0, max_seconds=2.0, compiles=False)
    assert fate("torch.relu(x - 0.5)", criteria=slow).dropped is Filter.RUNTIME
    tight = Criteria(H200, max_memory=1 << 16, compiles=False)
    examined = fate("torch.relu(x - 0.5)", criteria=tight, features=(1 << 20, 60))
    assert examined.dropped is Filter.MEMORY
    assert "expected at most 0.00 GiB at full, got 0.01 GiB" in examined.detail


def test_tasks_of_the_catalogue_are_recognised_by_operators_and_by_syntax(known):
    softmax = fate("torch.softmax(x, dim=1)", known=known)
    assert softmax.dropped is Filter.SIGNATURE
    assert "L1/23" in softmax.detail
    twin = composition("torch.relu(x - 0.5)")
    by_syntax = Catalogue({}, {"twin": syntax_tokens(twin.source())})
    assert fate("torch.relu(x - 0.5)", known=by_syntax).dropped is Filter.SIMILARITY


def test_the_catalogue_is_known_whole(known):
    assert len(known.tokens) == 250
    assert set(known.tokens) == set(tasks.ids())
    assert ("relu",) in known.signatures
    assert all(1 <= len(signature) <= 40 for signature in known.signatures)


def test_tasks_keep_to_their_time_memory_and_split(synthesised):
    out, manifest, _ = synthesised
    written = records.read_records(out)
    assert len({record.id for record in written}) == len(written) == COUNT == manifest.count
    for record in written:
        task = record.task("t")
        assert 1e-3 <= record.modelled_seconds <= 0.1
        assert task.facts("full").memory_bytes <= 14e9
        families = tuple(record.composition.split("+"))
        assert record.split == split_of(families)
        assert len(families) == len(record.operators)


def test_the_manifest_accounts_for_every_candidate(synthesised):
    out, manifest, steps = synthesised
    assert manifest.examined == manifest.count + sum(manifest.dropped.values())
    assert list(manifest.dropped) == [name.value for name in Filter]
    assert manifest.sha256 == hashlib.sha256(out.read_bytes()).hexdigest()
    assert manifest.inductor == SAMPLED
    assert sum(manifest.splits.values()) == sum(manifest.operators.values()) == COUNT
    assert synthesis.read_manifest(out) == manifest
    assert steps[-1] == (COUNT, manifest.examined)
    assert [examined for _, examined in steps] == list(range(1, manifest.examined + 1))
    assert not out.with_name("tasks.jsonl.partial").exists()


def test_killed_and_taken_up_again_by_one_worker_it_gives_the_same_file(synthesised, tmp_path):
    out, manifest, _ = synthesised
    again = tmp_path / "again.jsonl"
    partial = again.with_name("again.jsonl.partial")
    cut_short = b'{"index":99,"dro'
    partial.write_bytes(out.with_name("killed").read_bytes() + cut_short)
    with pytest.raises(UsageError, match=r"expected the settings of this run.*seed 26"):
        synthesis.synthesize(COUNT, SEED + 1, again, criteria=CRITERIA)
    steps = []
    resumed = synthesis.synthesize(
        COUNT,
        SEED,
        again,
        workers=1,
        criteria=CRITERIA,
        progress=lambda *step: steps.append(step),
    )
    assert again.read_bytes() == out.read_bytes()
    assert resumed == manifest
    assert steps[0][0] >= COUNT - 2  # it did not begin anew
    assert not partial.exists()


def test_a_partial_file_that_is_none_is_not_overwritten(tmp_path):
    partial = tmp_path / "tasks.jsonl.partial"
    partial.write_text("my notes\n")
    with pytest.raises(UsageError, match=r"tasks\.jsonl\.partial: expected a run's fates"):
        synthesis.synthesize(1, 0, tmp_path / "tasks.jsonl")
    assert partial.read_text() == "my notes\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": 0}, "count: expected a whole number of at least 1, got 0"),
        ({"seed": -1}, "seed: expected"),
        ({"workers": 0}, "workers: expected"),
        ({"out": "nowhere/tasks.jsonl"}, "in a folder that exists"),
    ],
)
def test_arguments_that_are_not_accepted(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=message):
        synthesis.synthesize(**{"count": 1, "seed": 0, "out": "tasks.jsonl", **arguments})


def test_a_file_that_exists_is_kept_unless_told(synthesised):
    with pytest.raises(UsageError, match="expected a file that does not exist yet"):
        synthesis.synthesize(1, 0, synthesised[0])


def test_a_manifest_that_is_none(tmp_path):
    (tmp_path / "t.manifest.json").write_text("{}")
    with pytest.raises(RecordError, match="expected a manifest"):
        synthesis.read_manifest(tmp_path / "t.jsonl")


def test_degeneracy_looks_at_every_output_and_every_draw():
    def draw(*outputs):
        return degenerate.Draw((torch.ones(3),), tuple(torch.tensor(o).double() for o in outputs))

    varied, other = [1.0, -2.0, 3.0], [4.0, 1.0, -1.0]
    constant = [2.0, 2.0, 2.0]
    assert not degenerate.degeneracy([(draw(varied), draw(other))])
    assert "constant" in degenerate.degeneracy([(draw(constant), draw([3.0, 3.0, 3.0]))])
    assert not degenerate.degeneracy([(draw(constant, varied), draw(constant, other))])
    assert "the same" in degenerate.degeneracy([(draw(varied), draw(other)), (draw(varied),) * 2])
    assert "got none" in degenerate.degeneracy([(draw(), draw())])
    rare = draw([1.0, float("inf"), 2.0])
    assert "infinities" in degenerate.degeneracy([(draw(varied), draw(other))], [rare])


def test_the_environment_plays_a_file_of_tasks(synthesised, fake_judge):
    out, manifest, _ = synthesised
    ids = {split: {t.id for t in records.read_tasks(out, split)} for split in manifest.splits}
    for split, expected in ids.items():
        env = gym.make("KernelSynth-v0", tasks=out, split=split, judge=fake_judge)
        seen = {env.reset(seed=seed)[1]["task_id"] for seed in range(40)}
        assert seen <= expected
        assert len(seen) > len(expected) / 2
    vector = kernelgym.make_vec("KernelSynth-v0", 2, tasks=out, split="train", judge=fake_judge)
    _, infos = vector.reset(seed=0)
    assert set(infos["task_id"]) <= ids["train"]
    vector.close()


def test_the_environment_makes_a_set_where_there_is_no_file(fake_judge):
    env = gym.make("KernelSynth-v0", split="heldout", count=2, judge=fake_judge)
    observation, info = env.reset(seed=1)
    assert info["task_id"].startswith("synth/0/")
    assert "class Model" in observation["task"]
    made = env.unwrapped._tasks
    assert len(made) == 2
    again = gym.make("KernelSynth-v0", split="heldout", count=2, judge=fake_judge)
    assert again.unwrapped._tasks == made


def test_the_environment_says_what_is_wrong_with_its_tasks(tmp_path):
    with pytest.raises(ConfigError, match="split: expected one of train, heldout, got 'test'"):
        gym.make("KernelSynth-v0", split="test")
    path = tmp_path / "tasks.jsonl"
    path.write_text('{"id": "a", "text": ""}\n{"id"\n')
    with pytest.raises(TaskFormatError, match=r"tasks\.jsonl:2: expected a task"):
        gym.make("KernelSynth-v0", tasks=path)


def test_records_are_plain_json(synthesised):
    first = json.loads(synthesised[0].read_text().splitlines()[0])
    assert set(first) == {field.name for field in dataclasses.fields(records.TaskRecord)}
