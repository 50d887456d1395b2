"""Index arithmetic against plain integers."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelgym.agents.kernels.index import Index, linear, unravel, variable


def value(index, **variables):
    """Evaluates the C++ text; for indices of at least 0, / is //."""
    return eval(index.text().replace("/", "//"), {}, variables)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.lists(st.integers(1, 6), min_size=1, max_size=3),
    st.integers(0, 9),
    st.integers(1, 12),
)
def test_quotient_and_remainder_are_exact(shape, factors, constant, divisor):
    total = 1
    for size in shape:
        total *= size
    digits = unravel(variable("i", total), shape)
    index = Index(constant=constant)
    for digit, factor in zip(digits, itertools.cycle(factors), strict=False):
        index = index + digit * factor
    for i in range(total):
        got = value(index, i=i)
        assert value(index // divisor, i=i) == got // divisor
        assert value(index % divisor, i=i) == got % divisor
        assert 0 <= index.least <= got <= index.greatest


@given(st.permutations([2, 3, 4, 5]))
def test_a_reshaped_contiguous_tensor_is_read_in_order(shape):
    i = variable("i", 120)
    assert linear(unravel(i, shape), shape) == i
    assert linear(unravel(linear(unravel(i, shape), shape), (6, 20)), (6, 20)) == i


def test_texts_are_what_a_person_would_write():
    row, column = unravel(variable("i", 12 * 8), (12, 8))
    assert row.text() == "i / 8"
    assert column.text() == "i % 8"
    assert (column * 12 + row).text() == "(i % 8) * 12 + i / 8"
    assert (row * -1 + 3).text() == "-i / 8 + 3"
    assert variable("i", 1).text() == "0"


@pytest.mark.parametrize("size", [7, 10])
def test_an_uneven_split_stays_right(size):
    index = variable("i", size) * 3 + 1
    for i in range(size):
        assert value(index // 4, i=i) == (3 * i + 1) // 4
        assert value(index % 4, i=i) == (3 * i + 1) % 4
