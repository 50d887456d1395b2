"""Perturbed weights."""

import pytest
import torch

from kernelgym import tasks
from kernelgym.errors import TaskFormatError


def model_of(task):
    module = task.module("small")
    torch.manual_seed(0)
    return module.Model(*module.get_init_inputs())


def test_every_parameter_moves_and_the_seed_decides_how():
    task = tasks.get("L1/33")
    models = [model_of(task) for _ in range(3)]
    constructed = {key: value.clone() for key, value in models[0].state_dict().items()}
    for model, seed in zip(models, (1, 1, 2), strict=True):
        task.perturb(model, "small", seed)
    first, same, other = (model.state_dict() for model in models)
    for key in ("bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"):
        assert (first[key] != constructed[key]).all()
        assert torch.equal(first[key], same[key])
        assert not torch.equal(first[key], other[key])
    assert first["bn.num_batches_tracked"] == 0
    assert (first["bn.running_var"] > 0).all()


def test_matrices_get_the_variance_that_a_deep_network_needs():
    task = tasks.get("L1/87")
    model = model_of(task)
    before = model.conv1d.weight.detach().clone()
    task.perturb(model, "small", 0)
    ratio = model.conv1d.weight.std() / before.std()
    assert ratio.item() == pytest.approx(6**0.5 * (1 + 0.3**2) ** 0.5, rel=0.1)


def test_a_constant_is_not_scaled():
    task = tasks.get("L1/40")
    model = model_of(task)
    task.perturb(model, "small", 0)
    assert model.ln.weight.mean().item() == pytest.approx(1.0, abs=0.02)
    assert model.ln.weight.std().item() == pytest.approx(0.3, abs=0.02)


def test_an_entry_may_have_a_law_of_its_own(tmp_path):
    text = tasks.get("L1/35").text.replace(
        'WEIGHTS = "perturbed"', 'WEIGHTS = {"gn.bias": ("uniform", 5.0, 6.0)}'
    )
    path = tmp_path / "norm.py"
    path.write_text(text)
    task = tasks.load_file(path)
    assert task.facts("small").weights == "perturbed"
    model = model_of(task)
    task.perturb(model, "small", 0)
    assert model.gn.bias.min() >= 5.0
    assert model.gn.weight.max() < 4.0
    assert (model.gn.weight != 1.0).all()


def test_a_law_for_an_entry_that_is_not_there(tmp_path):
    text = tasks.get("L1/35").text.replace(
        'WEIGHTS = "perturbed"', 'WEIGHTS = {"bias": ("uniform", 5.0, 6.0)}'
    )
    path = tmp_path / "norm.py"
    path.write_text(text)
    task = tasks.load_file(path)
    with pytest.raises(
        TaskFormatError, match=r"expected keys of the state \(gn\.weight, gn\.bias\)"
    ):
        task.perturb(model_of(task), "small", 0)


def test_the_global_generator_is_left_alone():
    task = tasks.get("L1/35")
    model = model_of(task)
    before = torch.get_rng_state()
    task.perturb(model, "small", 0)
    assert torch.equal(before, torch.get_rng_state())
