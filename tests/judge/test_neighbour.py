"""Inputs that differ in a few places, within their laws."""

import pytest
import torch

from kernelgym.judge.neighbour import change_few
from kernelgym.tasks.laws import InputSpec, Law


def spec(kind, *parameters):
    return InputSpec("x", (50, 40), torch.float32, Law(kind, parameters))


@pytest.mark.parametrize(("kind", "parameters"), [("mixed", ()), ("uniform", (0.5, 2.0))])
def test_a_few_elements_change_and_follow_from_the_seed(kind, parameters):
    base = torch.rand(50, 40) + 0.5
    one, same, other = base.clone(), base.clone(), base.clone()
    assert change_few([one], [spec(kind, *parameters)], 3)
    assert change_few([same], [spec(kind, *parameters)], 3)
    assert change_few([other], [spec(kind, *parameters)], 4)
    assert 1 <= int((one != base).sum()) <= 4
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(one.abs().flatten().sort()[0], base.flatten().sort()[0])
    assert bool((one < 0).any()) == (kind == "mixed")


@pytest.mark.parametrize("kind", ["symmetric", "upper_triangular", "probabilities", "given"])
def test_a_law_with_structure_is_left_alone(kind):
    base = torch.rand(50, 40)
    given = base.clone()
    assert not change_few([given], [spec(kind)], 3)
    assert torch.equal(given, base)
