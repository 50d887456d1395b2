from __future__ import annotations

import copy
import json
import pickle

import pytest
from gymnasium import spaces

from kernelgym.edits import parse
from kernelgym.errors import ConfigError, EditError
from kernelgym.spaces import SourceText


@pytest.mark.parametrize("text", ["", "a\nb\r\n\t", "\0", "\ud800", "\u202eabc", "é→🚀", "x" * 100])
def test_any_short_string_is_inside(text):
    assert text in SourceText(100)


@pytest.mark.parametrize("thing", ["x" * 101, b"x", None, 3, ["x"]])
def test_other_things_are_not(thing):
    assert thing not in SourceText(100)


def test_samples_are_inside_seeded_and_of_every_fate():
    space, twin = SourceText(4000, seed=5), SourceText(4000, seed=5)
    samples = [space.sample() for _ in range(200)]
    assert samples == [twin.sample() for _ in range(200)]
    assert all(sample in space for sample in samples)
    fates = set()
    for sample in samples:
        try:
            fates.add("submits" if parse(sample).submits else "edits")
        except EditError:
            fates.add("refused")
    assert fates == {"submits", "edits", "refused"}


def test_samples_respect_the_length():
    space = SourceText(7, seed=0)
    assert max(len(space.sample()) for _ in range(50)) == 7


def test_samples_take_no_mask():
    with pytest.raises(ConfigError, match="mask"):
        SourceText(5).sample(mask=(1, None))


def test_json_both_ways_with_lone_surrogates():
    space = SourceText(100)
    samples = ["a\n", "\ud800", "\u202e\0"]
    stored = json.loads(json.dumps(space.to_jsonable(samples)))
    assert space.from_jsonable(stored) == samples


def test_equality_and_repr():
    assert SourceText(5) == SourceText(5, seed=1)
    assert SourceText(5) != SourceText(6)
    assert SourceText(5) != spaces.Text(5)
    assert repr(SourceText(5)) == "SourceText(5)"


def test_copies_are_equal_and_independent():
    space = SourceText(100, seed=3)
    for twin in (copy.deepcopy(space), pickle.loads(pickle.dumps(space))):
        assert twin == space
        assert twin.sample() == copy.deepcopy(space).sample()


def test_a_length_below_one_is_refused():
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        SourceText(0)
