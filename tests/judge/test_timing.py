"""Medians, intervals and speedups from batches of calls, by samples whose law is known."""

import random

import pytest

from kernelgym.judge.timing import BETWEEN_RUNS, measurement, plan, speedup


def batches_of(median, spread, rng, batches=20, calls=5):
    return [[rng.gauss(median, spread) for _ in range(calls)] for _ in range(batches)]


def test_the_median_is_robust_against_single_slow_calls():
    calm = [[1e-3] * 5 for _ in range(20)]
    calm[3][2] = calm[7][0] = 1.0
    found = measurement(calm, random.Random(0))
    assert found.median == 1e-3
    assert found.batches == 20
    assert found.source == "measured"


def test_without_noise_the_interval_is_the_term_between_runs():
    found = measurement([[2e-3]] * 20, random.Random(0))
    assert found.low == pytest.approx(2e-3 * (1 - 1.96 * BETWEEN_RUNS))
    assert found.high == pytest.approx(2e-3 * (1 + 1.96 * BETWEEN_RUNS))


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    rng = random.Random(1)
    hits = 0
    for _ in range(100):
        # A run has its own median, which batches of that run cannot show.
        own = 1e-3 * rng.gauss(1.0, BETWEEN_RUNS)
        found = measurement(batches_of(own, 1e-5, rng), rng)
        hits += found.low <= 1e-3 <= found.high
    assert 90 <= hits <= 100


def test_more_noise_widens_the_interval():
    rng = random.Random(2)
    narrow = measurement(batches_of(1e-3, 1e-6, rng), rng)
    wide = measurement(batches_of(1e-3, 1e-4, rng), rng)
    assert wide.high - wide.low > 5 * (narrow.high - narrow.low)


def test_a_speedup_is_baseline_over_candidate_and_its_interval_holds_the_truth():
    rng = random.Random(3)
    found = speedup(batches_of(3e-3, 3e-5, rng), batches_of(2e-3, 2e-5, rng), rng)
    assert found.low < 1.5 < found.high
    assert found.value == pytest.approx(1.5, rel=0.01)
    assert found.high - found.low < 0.05


def test_drift_that_meets_both_sides_leaves_the_speedup_alone():
    drift = [1.0 + 0.02 * i for i in range(20)]
    candidate = [[1e-3 * d] for d in drift]
    baseline = [[2e-3 * d] for d in drift]
    found = speedup(baseline, candidate, random.Random(4))
    assert found.value == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("pair_seconds", "batches", "calls"),
    [(1e-6, 20, 10), (1e-3, 20, 10), (0.01, 20, 5), (0.2, 20, 1), (1.0, 5, 1), (60.0, 5, 1)],
)
def test_about_a_second_is_spent(pair_seconds, batches, calls):
    assert plan(pair_seconds) == (batches, calls)
