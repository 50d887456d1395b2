"""Budgets, comparisons and what a mismatch report says."""

import pytest
import torch

from kernelgym.errors import ReferenceFault
from kernelgym.judge.correctness import Expected, compare


@pytest.fixture
def oracle():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(64, 100, generator=generator, dtype=torch.float64)


def expected_for(oracle, precision="default"):
    return Expected.from_oracle(oracle, oracle.float(), precision)


def test_rounding_to_fp32_is_within_a_small_part_of_the_budget(oracle):
    result = compare(oracle.float(), expected_for(oracle))
    assert result.passed
    assert result.error < 0.05


def test_half_precision_is_beyond_the_fp32_budget_and_within_its_own(oracle):
    half = oracle.half().float()
    assert not compare(half, expected_for(oracle)).passed
    assert compare(half, expected_for(oracle, "fp16")).passed


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_zeros_never_pass_however_small_the_output(oracle, scale):
    result = compare(torch.zeros(64, 100), expected_for(oracle * scale))
    assert not result.passed
    assert result.code == "check.constant"
    assert result.bad == 6400


def test_wrong_last_columns_are_named(oracle):
    got = oracle.float()
    got[:, -31:] = 0
    result = compare(got, expected_for(oracle))
    assert result.code == "check.tail"
    assert result.pattern == "all errors in the last 31 columns: all wrong elements are 0"
    assert result.bad == 64 * 31


def test_the_worst_element_is_named_with_both_values(oracle):
    got = oracle.float()
    got[3, 7] += 5
    result = compare(got, expected_for(oracle))
    assert result.worst.index == (3, 7)
    assert result.worst.got - result.worst.expected == pytest.approx(5, abs=1e-5)
    assert result.bad == 1


def test_every_other_element_wrong_is_seen_as_a_stride(oracle):
    got = oracle.float()
    got[:, 1::2] += 1
    assert "columns 1, 3, 5, …" in compare(got, expected_for(oracle)).pattern


def test_a_wrong_factor_is_named(oracle):
    result = compare(oracle.float() * 2, expected_for(oracle))
    assert result.pattern == "wrong elements are 2 times what was expected"


def test_nan_never_passes_and_is_said_to_be_unwritten(oracle):
    got = oracle.float()
    got[0] = torch.nan
    result = compare(got, expected_for(oracle))
    assert result.code == "check.not_finite"
    assert result.error is None
    assert "never written" in result.pattern


def test_infinite_output_is_not_finite(oracle):
    got = oracle.float()
    got[5, 5] = torch.inf
    assert compare(got, expected_for(oracle)).code == "check.not_finite"


def test_oracle_that_is_not_finite_is_the_references_fault(oracle):
    oracle[0, 0] = torch.inf
    with pytest.raises(ReferenceFault, match="finite"):
        expected_for(oracle)


def test_whole_numbers_must_be_equal():
    value = torch.arange(10)
    assert compare(value, expected_for(value)).passed
    assert not compare(value + 1, expected_for(value)).passed


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_fewer_indices_point_into_fewer_scores(dim, keep):
    generator = torch.Generator().manual_seed(1)
    scores = torch.rand(4, 5, 6, generator=generator, dtype=torch.float64)
    indices = scores.argmax(dim, keepdim=keep)
    cut = 1 if dim == 0 else 0  # of the scores
    there = cut if keep or cut < dim else cut - 1
    expected = Expected.from_index(indices, scores).narrow(there, 3)
    right = scores.narrow(cut, 0, 3).argmax(dim, keepdim=keep)
    assert compare(right, expected).passed
    right.view(-1)[-1] = (right.view(-1)[-1] + 1) % scores.shape[dim]
    assert compare(right, expected).bad == 1


def test_an_index_is_right_where_values_tie_and_wrong_elsewhere():
    scores = torch.tensor([[1.0, 3.0, 3.0, 0.0], [5.0, 1.0, 2.0, 4.0]], dtype=torch.float64)
    expected = Expected.from_index(torch.tensor([1, 0]), scores)
    assert compare(torch.tensor([2, 0]), expected).passed
    assert compare(torch.tensor([2, 3]), expected).bad == 1
    assert compare(torch.tensor([7, 0]), expected).bad == 1


def test_upstreams_tolerance_is_absolute_plus_relative():
    reference = torch.tensor([0.0, 100.0])
    expected = Expected.from_tolerance(reference, 1e-2)
    assert compare(torch.tensor([0.009, 101.0]), expected).passed
    assert not compare(torch.tensor([0.011, 101.0]), expected).passed


def test_empty_outputs_pass():
    empty = torch.empty(0, 3, dtype=torch.float64)
    assert compare(empty.float(), expected_for(empty)).passed
