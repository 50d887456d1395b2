"""Salts, and the draws that a reference makes from them."""

import torch

from kernelgym import tasks
from kernelgym.config import JudgeConfig
from kernelgym.judge.reference import Reference
from kernelgym.judge.salt import Salt

CPU = torch.device("cpu")


def draw(task_id, seed, index, **config):
    salt = Salt.make(seed, task_id)
    reference = Reference(tasks.get(task_id), "small", JudgeConfig(**config), salt, CPU)
    return reference.inputs(index)[0]


def test_a_seed_gives_the_same_values_and_another_gives_others():
    assert torch.equal(draw("L1/19", 3, 1), draw("L1/19", 3, 1))
    assert not torch.equal(draw("L1/19", 3, 1), draw("L1/19", 4, 1))
    assert Salt.make(None, "L1/19") != Salt.make(None, "L1/19")


def test_the_first_extra_draw_has_both_signs():
    values = draw("L1/19", 0, 1)
    assert 0.3 < float((values < 0).float().mean()) < 0.7


def test_upstreams_draw_is_the_tasks_own_whatever_the_salt():
    values = draw("L1/19", 0, 1, protocol="kernelbench")
    assert float(values.min()) >= 0
    assert float(values.max()) < 1
    assert torch.equal(values, draw("L1/19", None, 1, protocol="kernelbench"))


def test_inputs_come_in_the_precision_asked_for():
    assert draw("L1/19", 0, 1, precision="bf16").dtype is torch.bfloat16


def test_drawing_leaves_the_callers_generator_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    draw("L1/19", None, 0)
    draw("L1/19", None, 0, protocol="kernelbench")
    draw("L2/12", None, 0)
    assert torch.equal(before, torch.get_rng_state())


def test_commitment_does_not_give_the_salt_away():
    salt = Salt.make(1, "L1/19")
    assert len(salt.commitment) == 64
    assert salt.value.hex() not in salt.commitment


def test_perturbed_weights_differ_from_constructed_ones_and_follow_the_salt():
    states = []
    for seed in (0, 0, 1):
        salt = Salt.make(seed, "L1/33")
        states.append(Reference(tasks.get("L1/33"), "small", JudgeConfig(), salt, CPU).state)
    assert torch.equal(states[0]["bn.weight"], states[1]["bn.weight"])
    assert not torch.equal(states[0]["bn.weight"], states[2]["bn.weight"])
    assert not torch.equal(states[0]["bn.weight"], torch.ones_like(states[0]["bn.weight"]))
