"""Derived facts, held against records, against running the program, and against one another."""

import math
import time

import pytest
import torch

from kernelgym import tasks

from . import fingerprints

GIGABYTE = 10**9
# Their output is zero in every mode, so no record can show that the mode matters.
ALWAYS_ZERO = {"L2/83"}


STOCHASTIC = {"L2/66", "L2/83", "L3/35"}
NEAR_TIE_INDEX = {"L1/51", "L1/52"}
UNSCORABLE = {"L2/80", "L2/83", "L3/28"}

EACH = [
    pytest.param(i, marks=[pytest.mark.slow] if i in fingerprints.DEEP else []) for i in tasks.ids()
]


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def reference(task, dtype=torch.float32):
    """The small model in training mode, with the weights that an audit gives it."""
    module = task.module("small")
    torch.manual_seed(0)
    model = module.Model(*module.get_init_inputs()).to(dtype)
    if task.facts("small").weights == "perturbed":
        task.perturb(model, "small", seed=0)
    return model


@pytest.mark.parametrize("task_id", EACH)
def test_small_runs_on_one_core_under_every_law(task_id):
    task = tasks.get(task_id)
    model = reference(task)
    assert task.facts("small").memory_bytes <= 200e6
    seen = []
    for index in range(4):
        inputs = task.draw_inputs("small", seed=1, index=index)
        torch.manual_seed(0)
        with torch.no_grad():
            start = time.process_time()
            output = model(*inputs)
            assert time.process_time() - start < 1.0
        assert torch.isfinite(output).all()
        seen.append(output)
    ((shape, dtype),) = task.facts("small").outputs
    assert tuple(seen[0].shape) == shape
    assert str(seen[0].dtype) == f"torch.{dtype}"
    degenerate = task.facts("small").unscorable != ""
    error = (seen[1].double() - seen[3].double()).abs().max()
    assert (error < 1e-3 * seen[3].double().abs().max() + 1e-12) == degenerate


@pytest.mark.parametrize("task_id", EACH)
def test_pieces_give_what_the_whole_gives(task_id):
    task = tasks.get(task_id)
    cut = task.facts("small").slice_dim
    if cut is None:
        pytest.skip("not cut")
    model = reference(task, torch.float64)
    inputs = task.draw_inputs("small", seed=2, index=3, dtype=torch.float64)
    names = [spec.name for spec in task.input_specs("small")]
    dims = dict(cut.arguments)
    lengths = {inputs[names.index(name)].shape[dim] for name, dim in dims.items()}
    assert len(lengths) == 1
    length = lengths.pop()
    assert length >= 2
    middle = max(1, length // 3)
    with torch.no_grad():
        whole = model(*inputs)
        pieces = [
            model(
                *(
                    value.narrow(dims[name], start, count) if name in dims else value
                    for name, value in zip(names, inputs, strict=True)
                )
            )
            for start, count in ((0, middle), (middle, length - middle))
        ]
    together = torch.cat(pieces, cut.output)
    assert together.shape == whole.shape
    error = (together.double() - whole.double()).abs().max()
    assert error <= 1e-9 * (1 + whole.double().abs().max())


def test_what_couples_the_batch_is_not_cut():
    for task_id in ("L1/33", "L1/37", "L1/14", "L1/94", "L3/28"):
        assert tasks.get(task_id).facts("small").slice_dim is None


@pytest.mark.parametrize("task_id", EACH)
def test_mode_matters_where_records_differ(task_id):
    recorded = fingerprints.record(task_id)["fingerprint"]["mode_matters"]
    assert tasks.get(task_id).facts("full").mode_matters == (recorded or task_id in ALWAYS_ZERO)


@pytest.mark.parametrize("task_id", EACH)
def test_rules(task_id):
    facts = tasks.get(task_id).facts("full")
    assert facts.stochastic == (task_id in STOCHASTIC)
    assert (facts.output_rule == "stochastic") == (task_id in STOCHASTIC)
    assert (facts.output_rule == "near_tie_index") == (task_id in NEAR_TIE_INDEX)
    assert bool(facts.unscorable) == (task_id in UNSCORABLE)
    ((_, dtype),) = facts.outputs
    integral = not getattr(torch, dtype).is_floating_point
    assert integral == (facts.output_rule in ("exact", "near_tie_index"))


def _room(task, size):
    """Bytes that judging takes on a device: a forward pass, another output and set of weights."""
    facts = task.facts(size)
    return facts.memory_bytes + facts.min_bytes - sum(s.nbytes for s in task.input_specs(size))


@pytest.mark.parametrize("task_id", EACH)
def test_medium_is_there_where_full_does_not_fit_and_fits(task_id):
    task = tasks.get(task_id)
    assert ("medium" in task.sizes) == (_room(task, "full") > 13 * GIGABYTE)
    assert _room(task, "medium") <= 13 * GIGABYTE


@pytest.mark.parametrize(
    ("task_id", "tensors"),
    [
        ("L1/19", 2),  # input, output
        ("L1/25", 3),  # input, sigmoid, product
        ("L1/30", 3),  # input, 1 + |x| after |x| has gone, quotient
        ("L1/88", 5),  # input, its inner polynomial, half the input, tangent, 1 + tangent
    ],
)
def test_memory_counts_what_lives_at_a_time(task_id, tensors):
    task = tasks.get(task_id)
    (spec,) = task.input_specs("full")
    assert task.facts("full").memory_bytes == tensors * spec.nbytes


def test_memory_counts_parameters_once():
    task = tasks.get("L1/40")
    (spec,) = task.input_specs("full")
    parameters = 2 * 4 * math.prod(spec.shape[1:])
    statistics = 2 * 4 * spec.shape[0]
    assert task.facts("full").memory_bytes == 2 * spec.nbytes + parameters + statistics


def test_facts_allocate_nothing_and_leave_the_generator_alone():
    before = torch.get_rng_state()
    facts = tasks.get("L1/6").facts("full")
    assert facts.min_bytes > GIGABYTE
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    ("id_", "part"), [("L1/67", 1.0), ("L1/1", 0.0), ("L1/19", None), ("L3/9", 0.9997)]
)
def test_convolutions_are_counted_apart_from_products(id_, part):
    facts = tasks.get(id_).facts("full")
    if part is None:
        assert facts.flops == facts.convolution_flops == 0
    else:
        assert facts.convolution_flops / facts.flops == pytest.approx(part, abs=1e-4)
