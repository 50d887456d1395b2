"""Inputs of timed calls: new at each, within their laws, different along every dimension."""

import pytest
import torch

from kernelgym.judge.fresh_inputs import FreshInputs
from kernelgym.tasks.laws import InputSpec, Law

CPU = torch.device("cpu")


def fresh(value, kind="mixed", seed=0):
    specs = [InputSpec("x", tuple(value.shape), value.dtype, Law(kind))]
    return FreshInputs([value], specs, seed, CPU)


def factors(value, kind="mixed", seed=0):
    made = fresh(value, kind, seed)
    made.draw()
    return made.copies()[0] / value


@pytest.mark.parametrize("shape", [(), (7,), (5, 9), (1, 64), (3, 4, 5, 6), (2, 2**12, 3)])
def test_every_element_gets_a_factor_that_keeps_it_within_its_bounds(shape):
    found = factors(torch.ones(shape))
    assert found.shape == shape
    assert found.min() >= 0.5
    assert found.max() <= 1.0


def test_factors_differ_between_neighbours_along_every_dimension(monkeypatch):
    from kernelgym.judge import fresh_inputs

    for most in (2**22, 16):  # one row, and many
        monkeypatch.setattr(fresh_inputs, "_MOST_FACTORS", most)
        found = factors(torch.ones(8, 6, 10))
        for dim in range(3):
            assert (found.diff(dim=dim) != 0).float().mean() > 0.95


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.nn.functional.layer_norm(x, x.shape[1:]),
        lambda x: torch.nn.functional.batch_norm(x, None, None, training=True),
        lambda x: torch.softmax(x, 1),
        lambda x: x.argmax(1).float(),
        lambda x: x.argmax(0).float(),
    ],
)
def test_outputs_that_a_common_factor_would_not_change_change(function):
    made = fresh(torch.rand(16, 12, 10))
    made.draw()
    first = function(made.copies()[0])
    made.draw()
    second = function(made.copies()[0])
    assert (first != second).float().mean() > 0.5


def test_each_draw_is_another_and_a_seed_decides():
    value = torch.rand(32, 32)
    one, same, other = fresh(value, seed=1), fresh(value, seed=1), fresh(value, seed=2)
    for made in (one, same, other):
        made.draw()
    first = one.copies()[0]
    assert torch.equal(first, same.copies()[0])
    assert not torch.equal(first, other.copies()[0])
    one.draw()
    assert not torch.equal(first, one.copies()[0])


def test_writing_and_copying_give_the_same_bits():
    value = torch.rand(33, 65)
    made = fresh(value)
    made.draw()
    target = torch.empty_like(value)
    made.write([target])
    assert torch.equal(target, made.copies()[0])
    made.restore([target])
    assert torch.equal(target, value)


def test_a_symmetric_matrix_stays_symmetric_and_triangular_ones_triangular():
    value = torch.rand(16, 16)
    made = fresh(value + value.T, "symmetric")
    made.draw()
    (found,) = made.copies()
    assert torch.equal(found, found.T)
    upper = fresh(value.triu(), "upper_triangular")
    upper.draw()
    assert torch.equal(upper.copies()[0], upper.copies()[0].triu())


def test_signs_stay_signs_and_discrete_values_stay_themselves():
    signs = torch.rand(64).sub(0.5).sign()
    assert set(factors(signs, "sign").tolist()) == {-1.0, 1.0}
    assert torch.equal(factors(torch.ones(64), "bernoulli"), torch.ones(64))


def test_whole_numbers_and_plain_values_pass_as_they_are():
    labels = torch.arange(5)
    made = FreshInputs([labels, 3.0], [], 0, CPU)
    made.draw()
    copies = made.copies()
    assert torch.equal(copies[0], labels)
    assert copies[0] is not labels
    assert copies[1] == 3.0
