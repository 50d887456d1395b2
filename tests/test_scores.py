"""Scores against values worked out by hand."""

import pytest

from kernelgym.scores import Score, clean_tasks, score


def test_a_failure_counts_as_one(make_verdict):
    best = {
        "L1/19": make_verdict(eager=(4.0, 3.9, 4.1)),
        "L1/23": make_verdict(eager=(0.5, 0.4, 0.6)),
        "L1/26": None,
        "L1/36": make_verdict(eager=(1.02, 0.99, 1.05)),
    }
    result = score(best)
    assert (result.tasks, result.correct, result.faster) == (4, 3, 1)
    # (4 x 0.5 x 1 x 1.02) to the power of 1/4
    assert result.geometric_mean == pytest.approx(2.04**0.25)
    assert str(result) == "3 of 4 correct, 1 faster than eager, geometric mean 1.20x"


def test_nothing_is_scored_as_nothing():
    assert score({}) == Score(0, 0, 0, None)


def test_the_clean_tasks_leave_out_the_unscorable_and_the_unknown():
    assert clean_tasks(["L2/79", "L2/80", "L2/83", "mine"], "audited") == ("L2/79",)
    assert "L1/19" not in clean_tasks(["L1/19", "L1/1"], "kernelbench")
