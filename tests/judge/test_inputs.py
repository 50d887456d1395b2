"""Salts, draws and perturbed weights."""

import torch

from kernelgym import tasks
from kernelgym.judge.inputs import Salt, draw_inputs, perturb_state

CPU = torch.device("cpu")


def draw(task_id, seed, index, upstream=False):
    task = tasks.get(task_id)
    specs = task.input_specs("small")
    salt = Salt.make(seed, task.id)
    return draw_inputs(task, "small", specs, salt, index, CPU, upstream=upstream)


def test_a_seed_gives_the_same_values_and_no_seed_gives_others():
    assert torch.equal(draw("L1/19", 3, 1)[0], draw("L1/19", 3, 1)[0])
    assert not torch.equal(draw("L1/19", 3, 1)[0], draw("L1/19", 4, 1)[0])
    assert Salt.make(None, "L1/19") != Salt.make(None, "L1/19")


def test_the_first_extra_draw_has_both_signs():
    values = draw("L1/19", 0, 1)[0]
    assert 0.3 < float((values < 0).float().mean()) < 0.7


def test_upstreams_draw_is_the_tasks_own():
    values = draw("L1/19", 0, 1, upstream=True)[0]
    assert float(values.min()) >= 0
    assert float(values.max()) < 1


def test_drawing_leaves_the_callers_generator_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    draw("L1/19", None, 0)
    assert torch.equal(before, torch.get_rng_state())


def test_commitment_does_not_give_the_salt_away():
    salt = Salt.make(1, "L1/19")
    assert len(salt.commitment) == 64
    assert salt.value.hex() not in salt.commitment


def test_perturbed_state_moves_every_float_and_keeps_variances_positive():
    norm = torch.nn.BatchNorm1d(32)
    state = norm.state_dict()
    moved = perturb_state(state, Salt.make(0, "x"))
    assert set(moved) == set(state)
    for key in ("weight", "bias", "running_mean", "running_var"):
        assert not torch.equal(moved[key], state[key])
    assert float(moved["running_var"].min()) > 0
    assert float(moved["weight"].min()) > 0
    assert torch.equal(moved["num_batches_tracked"], state["num_batches_tracked"])
