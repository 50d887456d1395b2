"""The laws that inputs are drawn from."""

import math

import pytest
import torch

from kernelgym import tasks
from kernelgym.tasks.laws import KINDS, Law, read_law

PARAMETERS = {
    "uniform": (0.9, 1.1),
    "signed_uniform": (0.5, 2.0),
    "normal": (3.0, 0.5),
    "integers": (-2, 5),
    "bernoulli": (0.25,),
}
LAWS = [Law(kind, PARAMETERS.get(kind, ())) for kind in KINDS if kind != "given"]


def draw(law, shape=(60, 80), seed=0, index=0, dtype=torch.float32):
    return law.draw(shape, dtype, torch.Generator().manual_seed(seed), "cpu", index)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.kind)
@pytest.mark.parametrize("index", range(5))
def test_a_draw_is_finite_and_follows_from_its_seed(law, index):
    shape = (50, 50)
    first = draw(law, shape, 7, index)
    assert first.shape == shape
    assert first.dtype == torch.float32
    assert torch.isfinite(first).all()
    assert torch.equal(first, draw(law, shape, 7, index))
    assert not torch.equal(first, draw(law, shape, 8, index))


@pytest.mark.parametrize("index", range(1, 5))
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_float_types(index, dtype):
    value = draw(Law("mixed"), index=index, dtype=dtype)
    assert value.dtype == dtype
    assert torch.isfinite(value).all()
    assert value.double().std() > (0.1 if index < 4 else 0.1 / 32)


def test_draw_0_is_what_kernelbench_draws():
    value = draw(Law("mixed"), (400, 500))
    assert value.min() >= 0
    assert value.max() < 1
    assert value.mean().item() == pytest.approx(0.5, abs=0.005)
    assert value.std().item() == pytest.approx(12**-0.5, abs=0.005)


@pytest.mark.parametrize("seed", range(5))
def test_draw_1_is_centred_on_zero(seed):
    value = draw(Law("mixed"), (300, 400), seed, 1)
    assert abs(value.mean()) < 0.02 * value.std()
    assert (value < 0).float().mean().item() == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_draw_2_is_heavy_tailed(seed):
    value = draw(Law("mixed"), (300, 400), seed, 2).double()
    kurtosis = (value**4).mean() / (value**2).mean() ** 2
    assert kurtosis > 15  # 3 for a normal


@pytest.mark.parametrize("seed", range(5))
def test_draw_4_is_small_and_negative(seed):
    value = draw(Law("mixed"), (300, 400), seed, 4)
    assert 1 / 64 < value.std() < 1 / 8
    assert value.max() <= 0
    assert value.mean() < -1 / 64


def test_mixed_unit_is_mixed_without_the_small_draw():
    for index in (0, 1, 2, 3, 5):
        unit = draw(Law("mixed_unit"), (30, 40), 0, index)
        assert torch.equal(unit, draw(Law("mixed"), (30, 40), 0, index))
    assert draw(Law("mixed_unit"), (30, 40), 0, 4).mean().abs() > 0.4


def test_probabilities_are_never_nearly_equal():
    value = draw(Law("probabilities"), (300, 400), 0, 4)
    assert value.max() > 4 * value.min()


@pytest.mark.parametrize("index", [3, 5])
def test_later_draws_have_a_mean_of_their_own(index):
    means = [draw(Law("mixed"), (300, 400), seed, index).mean().item() for seed in range(20)]
    # The factors' mean is 1.08 in each of two dimensions.
    assert all(0.4 < abs(mean) < 1.9 for mean in means)
    assert min(means) < 0 < max(means)
    assert len({round(mean, 3) for mean in means}) > 15


def test_rows_and_columns_differ_in_scale():
    value = draw(Law("mixed"), (64, 64, 100), 0, 1)
    for dims in ((1, 2), (0, 2)):
        deviations = value.std(dims)
        assert deviations.max() > 2 * deviations.min()


def test_means_of_slices_differ():
    value = draw(Law("mixed"), (64, 64, 100), 0, 3)
    for dims in ((1, 2), (0, 2)):
        means = value.mean(dims).abs()
        assert means.max() > 2 * means.min()


def test_a_vector_and_a_scalar_can_be_drawn():
    for index in range(4):
        assert draw(Law("mixed"), (1000,), 0, index).std() > 0.1
        assert draw(Law("mixed"), (), 0, index).shape == ()


@pytest.mark.parametrize("index", range(6))
def test_structure_is_kept(index):
    n = (40, 40)
    symmetric = draw(Law("symmetric"), n, 0, index)
    assert torch.equal(symmetric, symmetric.T)
    upper = draw(Law("upper_triangular"), n, 0, index)
    assert torch.equal(upper, upper.triu())
    assert upper.diagonal().abs().min() > 0
    lower = draw(Law("lower_triangular"), n, 0, index)
    assert torch.equal(lower, lower.tril())
    probabilities = draw(Law("probabilities"), n, 0, index)
    assert torch.allclose(probabilities.sum(-1), torch.ones(40))
    assert probabilities.min() > math.exp(-6) / 40 / 2


def test_bounds_are_kept():
    value = draw(Law("uniform", (0.9, 1.1)))
    assert value.min() >= 0.9
    assert value.max() <= 1.1
    value = draw(Law("signed_uniform", (0.5, 2.0)))
    assert value.abs().min() >= 0.5
    assert value.abs().max() <= 2.0
    assert (value < 0).float().mean().item() == pytest.approx(0.5, abs=0.05)
    value = draw(Law("normal", (3.0, 0.5)))
    assert value.mean().item() == pytest.approx(3.0, abs=0.05)
    assert value.std().item() == pytest.approx(0.5, abs=0.05)


def test_whole_numbers_masks_and_signs():
    assert draw(Law("integers", (-2, 5)), dtype=torch.int64).unique().tolist() == list(range(-2, 5))
    # Beyond the whole numbers that float32 can count.
    high = 2**31
    assert draw(Law("integers", (high - 3, high)), dtype=torch.int64).unique().numel() == 3
    mask = draw(Law("bernoulli", (0.25,)), (300, 400), dtype=torch.bool)
    assert mask.dtype == torch.bool
    assert mask.float().mean().item() == pytest.approx(0.25, abs=0.01)
    assert draw(Law("sign")).unique().tolist() == [-1.0, 1.0]


def test_a_given_law_is_not_drawn_alone():
    with pytest.raises(ValueError, match=r"drawn by Task\.draw_inputs"):
        draw(Law("given"))


def test_a_parameter_may_be_a_name():
    assert read_law(("integers", 0, "classes"), {"classes": 9}, "") == Law("integers", (0, 9))


def test_drawn_inputs_match_their_specs():
    task = tasks.get("L1/95")
    scores, targets = task.draw_inputs("small", seed=3, index=2)
    specs = task.input_specs("small")
    assert [(tuple(v.shape), v.dtype) for v in (scores, targets)] == [
        (spec.shape, spec.dtype) for spec in specs
    ]
    assert targets.max() < task.module("small").num_classes
    again = task.draw_inputs("small", seed=3, index=2)
    assert torch.equal(scores, again[0])
    assert torch.equal(targets, again[1])
    assert not torch.equal(scores, task.draw_inputs("small", seed=4, index=2)[0])
    assert not torch.equal(targets, task.draw_inputs("small", seed=3, index=3)[1])


def test_plain_numbers_are_passed_as_they_are():
    matrix, scalar = tasks.get("L1/5").draw_inputs("small", seed=0)
    assert matrix.dim() == 2
    assert scalar == 3.14


def test_a_type_can_be_asked_for():
    scores, targets = tasks.get("L1/95").draw_inputs("small", 0, dtype=torch.bfloat16)
    assert scores.dtype == torch.bfloat16
    assert targets.dtype == torch.int64


def test_inputs_without_a_law_come_from_the_task_itself(tmp_path):
    text = tasks.get("L1/95").text.replace('LAWS = {"targets": ("integers", 0, "num_classes")}', "")
    path = tmp_path / "loss.py"
    path.write_text(text)
    task = tasks.load_file(path)
    before = torch.get_rng_state()
    first, second = (task.draw_inputs("small", seed, 1)[1] for seed in (0, 1))
    assert torch.equal(before, torch.get_rng_state())
    assert first.max() < 401
    assert not torch.equal(first, second)
    assert torch.equal(first, task.draw_inputs("small", 0, 1)[1])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_draws_on_a_gpu():
    for law in LAWS:
        for index in range(4):
            values = [
                law.draw(
                    (50, 50), torch.float32, torch.Generator("cuda").manual_seed(1), "cuda", index
                )
                for _ in range(2)
            ]
            assert values[0].is_cuda
            assert torch.equal(*values)
            assert torch.isfinite(values[0]).all()
