from __future__ import annotations

import math

import pytest

from kernelgym import rewards
from kernelgym.errors import ConfigError
from kernelgym.judge.verdict import Coverage, Measurement, Outcome

WRONG = [outcome for outcome in Outcome if outcome is not Outcome.CORRECT]
FASTER = (1.30, 1.20, 1.40)
NOISY = (1.30, 1.04, 1.60)
SLOWER = (0.60, 0.50, 0.70)

CORRECT_TABLE = [
    # name, against eager, against compile, score
    ("milestone", None, None, 1.0),
    ("milestone", SLOWER, SLOWER, 1.0),
    ("milestone", NOISY, NOISY, 1.0),
    ("milestone", (1.05, 1.05, 1.05), None, 1.0),
    ("milestone", FASTER, None, 2.0),
    ("milestone", FASTER, NOISY, 2.0),
    ("milestone", FASTER, FASTER, 3.0),
    ("milestone", NOISY, FASTER, 1.0),
    ("speedup", None, None, 0.0),
    ("speedup", FASTER, SLOWER, 1.2),
    ("log_speedup", FASTER, None, 0.1823215567939546),
    ("log_speedup", SLOWER, None, -0.6931471805599453),
    ("log_speedup", (0.01, 0.001, 0.02), None, -4.605170185988091),
    ("kevin", None, None, 0.3),
    ("kevin", FASTER, None, 1.5),
    ("drkernel", None, None, 1.75),
    ("drkernel", FASTER, None, 2.95),
    ("drkernel", (9.0, 8.0, 10.0), None, 4.75),
    ("efficiency", FASTER, None, 0.1823215567939546),
]


@pytest.mark.parametrize(("name", "eager", "compiled", "score"), CORRECT_TABLE)
def test_scores_of_correct_kernels(make_verdict, name, eager, compiled, score):
    verdict = make_verdict(eager=eager, compiled=compiled, coverage=Coverage(0.75, 0.25, 0.0))
    assert rewards.get(name).score(verdict) == pytest.approx(score)


@pytest.mark.parametrize("outcome", WRONG)
@pytest.mark.parametrize(
    ("name", "score"),
    [
        ("milestone", -1.0),
        ("speedup", 0.0),
        ("log_speedup", math.log(0.01)),
        ("kevin", 0.0),
        ("drkernel", 0.0),
        ("efficiency", math.log(0.01)),
    ],
)
def test_scores_of_all_others(make_verdict, outcome, name, score):
    # Even with a time beside it, which an incorrect kernel may well have.
    assert rewards.get(name).score(make_verdict(outcome, eager=(9.0, 9.0, 9.0))) == score
    assert rewards.get(name).value(None) == score


def joules(value: float) -> Measurement:
    return Measurement(value, value / 2, value * 2, 9, "measured")


@pytest.mark.parametrize(
    ("fields", "score"),
    [
        ({"peak_memory": 200, "peak_memory_eager": 100}, 0.1823215568 - 0.1 * 0.6931471806),
        ({"peak_memory": 50, "peak_memory_eager": 100}, 0.1823215568 + 0.1 * 0.6931471806),
        ({"peak_memory": 200}, 0.1823215568),
        ({"peak_memory": 0, "peak_memory_eager": 100}, 0.1823215568),
        # The high end of the candidate's 1 J is 2 J.
        ({"energy": joules(1.0), "energy_eager": joules(4.0)}, 0.1823215568 + 0.25 * 0.6931471806),
        ({"energy": joules(1.0)}, 0.1823215568),
    ],
)
def test_efficiency_weighs_memory_and_energy_where_both_sides_are_known(
    make_verdict, fields, score
):
    verdict = make_verdict(eager=FASTER, **fields)
    assert rewards.get("efficiency").score(verdict) == pytest.approx(score)


@pytest.mark.parametrize(
    ("before", "now", "paid"),
    [(None, -1, -1), (None, 3, 3), (-1, 1, 2), (1, 3, 2), (3, 1, 0), (2, -1, 0), (2, 2, 0)],
)
def test_a_verdict_pays_what_it_adds_to_the_best(make_verdict, before, now, paid):
    made = {
        -1: make_verdict(Outcome.INCORRECT),
        1: make_verdict(),
        2: make_verdict(eager=FASTER),
        3: make_verdict(eager=FASTER, compiled=FASTER),
    }
    best = None if before is None else made[before]
    assert rewards.get("milestone")(made[now], best) == paid


def test_the_better_verdict_is_by_score_then_by_speedup(make_verdict):
    reward = rewards.get("milestone")
    slow, fast = make_verdict(eager=FASTER), make_verdict(eager=(3.0, 2.0, 4.0))
    wrong = make_verdict(Outcome.INCORRECT)
    assert rewards.better(reward, wrong, None) is wrong
    assert rewards.better(reward, slow, wrong) is slow
    assert rewards.better(reward, wrong, slow) is slow
    assert rewards.better(reward, fast, slow) is fast
    assert rewards.better(reward, slow, fast) is fast
    assert rewards.better(reward, make_verdict(eager=FASTER), slow) is slow


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ConfigError, match=r"expected one of drkernel, .* speedup, got 'none'"):
        rewards.get("none")
