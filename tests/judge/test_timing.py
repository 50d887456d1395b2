"""Medians, intervals, speedups and turns, by samples whose law is known."""

import random
from statistics import median

import pytest

from kernelgym.judge.timing import (
    UNCALIBRATED,
    Plan,
    Spread,
    SpreadPoint,
    measurement,
    plan,
    scaled,
    scaled_speedup,
    speedup,
    take_turns,
)
from kernelgym.judge.verdict import Measurement, Speedup

SPREAD = Spread((SpreadPoint(1e-3, 0.002, 0.003),))


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
    found = measurement([[2e-3]] * 20, random.Random(0), spread=SPREAD)
    assert found.low == pytest.approx(2e-3 * (1 - 1.96 * 0.002))
    assert found.high == pytest.approx(2e-3 * (1 + 1.96 * 0.002))
    ratio = speedup([[2e-3]] * 20, [[1e-3]] * 20, random.Random(0), spread=SPREAD)
    assert ratio.high == pytest.approx(2 * (1 + 1.96 * 0.003))


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    rng = random.Random(1)
    hits = 0
    for _ in range(100):
        # A run has its own median, which batches of that run cannot show.
        own = 1e-3 * rng.gauss(1.0, 0.002)
        found = measurement(batches_of(own, 1e-5, rng), rng, spread=SPREAD)
        hits += found.low <= 1e-3 <= found.high
    assert 90 <= hits <= 100


def test_without_the_term_between_runs_it_would_not():
    rng = random.Random(1)
    blind = Spread((SpreadPoint(1e-3, 1e-9, 1e-9),))
    hits = 0
    for _ in range(100):
        own = 1e-3 * rng.gauss(1.0, 0.002)
        found = measurement(batches_of(own, 1e-5, rng), rng, spread=blind)
        hits += found.low <= 1e-3 <= found.high
    assert hits < 90


def test_more_noise_widens_the_interval():
    rng = random.Random(2)
    narrow = measurement(batches_of(1e-3, 1e-6, rng), rng)
    wide = measurement(batches_of(1e-3, 1e-4, rng), rng)
    assert wide.high - wide.low > 5 * (narrow.high - narrow.low)


def test_the_spread_lies_between_its_points_and_ends_with_them():
    spread = Spread((SpreadPoint(1e-6, 0.01, 0.02), SpreadPoint(1e-4, 0.002, 0.004)))
    assert spread.of_median(1e-5) == pytest.approx(0.006)
    assert spread.of_ratio(1e-5) == pytest.approx(0.012)
    assert spread.of_median(1e-9) == 0.01
    assert spread.of_ratio(1.0) == 0.004


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
    found = speedup(baseline, candidate, random.Random(4), spread=SPREAD)
    assert found.value == pytest.approx(2.0)
    assert found.high - found.low == pytest.approx(2 * 1.96 * 0.003 * 2.0)


def test_two_percent_of_delay_are_told_apart():
    """What the intervals are for: twenty judgements of each of two kernels."""
    rng = random.Random(5)
    apart = 0
    for _ in range(20):
        sides = []
        for factor in (1.0, 1.02):
            own = factor * rng.gauss(1.0, 0.001)
            candidate = batches_of(3e-5 * own, 1e-7, rng)
            sides.append(speedup(batches_of(3e-5, 1e-7, rng), candidate, rng))
        apart += sides[0].low > sides[1].high
    assert apart >= 18


def test_a_stored_baseline_is_the_live_anchor_times_the_ratio():
    live = Measurement(2e-3, 1.98e-3, 2.02e-3, 20, "measured")
    found = scaled(live, Speedup(0.5, 0.49, 0.51))
    assert found.median == pytest.approx(1e-3)
    assert found.source == "stored"
    # 1 % and 2 % of two independent values together.
    assert found.high / found.median - 1 == pytest.approx((0.01**2 + 0.02**2) ** 0.5)
    ratio = scaled_speedup(Speedup(3.0, 2.97, 3.03), Speedup(0.5, 0.49, 0.51))
    assert ratio.value == pytest.approx(1.5)
    assert 1 - ratio.low / ratio.value == pytest.approx((0.01**2 + 0.02**2) ** 0.5)


@pytest.mark.parametrize(
    ("pair_seconds", "batches", "calls"),
    [(1e-6, 20, 10), (1e-3, 20, 10), (2e-3, 20, 5), (0.1, 20, 1), (1.0, 5, 1), (60.0, 5, 1)],
)
def test_about_a_fifth_of_a_second_is_spent(pair_seconds, batches, calls):
    assert plan(pair_seconds) == (batches, calls)


class Sides:
    """Two sides on a clock of their own; what they take is drawn."""

    def __init__(self, deviation):
        self.now = 0.0
        self.order = []
        self._rng = random.Random(6)
        self._deviation = deviation

    def clock(self):
        return self.now

    def side(self, name):
        def call():
            self.order.append(name)
            seconds = abs(self._rng.gauss(1e-3, self._deviation))
            self.now += seconds
            return seconds

        return call

    def taken(self, planned=None, **options):
        planned = planned or Plan(20, 3)
        sides = {name: self.side(name) for name in ("candidate", "eager")}
        return take_turns(sides, planned, random.Random(7), clock=self.clock, **options)


def test_turns_are_taken_batch_by_batch_in_random_order():
    sides = Sides(1e-6)
    taken = sides.taken()
    assert {name: len(batches) for name, batches in taken.items()} == {"candidate": 20, "eager": 20}
    assert all(len(batch) == 3 for batches in taken.values() for batch in batches)
    firsts = sides.order[::6]
    assert 4 < firsts.count("eager") < 16
    turns = zip(sides.order[::6], sides.order[3::6], strict=True)
    assert all({*turn} == {"candidate", "eager"} for turn in turns)


def test_quiet_batches_end_at_twenty_and_noisy_ones_go_on_for_half_as_long_again():
    assert len(Sides(1e-6).taken()["eager"]) == 20
    assert 25 <= len(Sides(3e-4).taken()["eager"]) <= 50


def test_what_takes_seconds_is_not_repeated_for_its_noise():
    assert len(Sides(5e-4).taken(Plan(5, 1))["eager"]) == 5


def test_something_may_be_read_after_each_batch():
    readings = []
    Sides(1e-6).taken(between=lambda: readings.append(1))
    assert len(readings) == 40


def test_uncalibrated_cards_get_wider_intervals_for_shorter_kernels():
    values = [UNCALIBRATED.of_ratio(seconds) for seconds in (3e-6, 2e-5, 1e-3)]
    assert values == sorted(values, reverse=True)
    assert median(values) == 0.003
