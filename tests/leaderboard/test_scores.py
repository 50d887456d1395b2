"""Scores against values computed by hand, and against KernelBench's definition of fast_p."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from kernelgym import scores as run_scores
from kernelgym.errors import RecordError
from kernelgym.judge.verdict import Measurement, Outcome, Speedup
from kernelgym.leaderboard.board import Board, Budget
from kernelgym.leaderboard.ranking import rank
from kernelgym.leaderboard.scores import score_tasks
from kernelgym.resampling import Estimate, Resamples
from kernelgym.scores import THRESHOLDS, TaskScore, score_set, task_score

BOARD = Board("NVIDIA H200", "audited", "strict", "default", "kernelbench", "full", Budget.TEN)


def solved(task: str, eager: float, compiled: float | None = None, **fields) -> TaskScore:
    def speedup(value):
        return Speedup(value, value * 0.98, value * 1.02)

    return TaskScore(
        task,
        Outcome.CORRECT,
        eager=speedup(eager),
        compile=speedup(compiled) if compiled else None,
        **fields,
    )


TASKS = (
    solved("L1/1", 4.0, 2.0, light_fraction=0.95, own=1.0, library=0.0, memory_ratio=0.5),
    solved("L1/2", 1.01, 1.03, light_fraction=0.5, own=0.5, library=0.5, memory_ratio=2.0),
    solved("L1/3", 0.5, 0.25, light_fraction=0.1, own=0.0, library=1.0),
    TaskScore("L1/4", Outcome.INCORRECT, "check.tail"),
    TaskScore("L1/5", Outcome.REJECTED, "rule.torch_compute"),
    TaskScore("L1/6"),
    solved("L1/7", 1.06, 1.06),
    solved("L1/8", 1.08, 1.08),
)


def test_scores_by_hand():
    found = score_set(TASKS)
    assert (found.tasks, found.attempted, found.rejected) == (8, 7, 1)
    assert found.correct.value == 5 / 8
    assert found.eager is not None
    # 4.0, 1.06 and 1.08 lie above 1 with their intervals; 1.01 does not; of 1.06 the low end is 1.04
    assert found.eager.faster.value == 3 / 8
    assert found.eager.faster_by_5_percent.value == 2 / 8
    product = 4.0 * 1.01 * 0.5 * 1.06 * 1.08
    assert found.eager.geomean_correct is not None
    assert found.eager.geomean_correct.value == pytest.approx(product ** (1 / 5))
    assert found.eager.geomean_all.value == pytest.approx(product ** (1 / 8))
    assert found.at_light.value == 1 / 8
    assert found.light_fraction is not None
    assert found.light_fraction.value == pytest.approx((0.95 + 0.5 + 0.1) / 3)
    assert found.own is not None
    assert found.own.value == pytest.approx(0.5)
    assert found.library is not None
    assert found.library.value == pytest.approx(0.5)
    assert found.memory_ratio is not None
    assert found.memory_ratio.value == pytest.approx(1.0)
    assert found.energy_ratio is None


def test_the_fast_p_curve_by_hand():
    curve = {p: estimate.value for p, estimate in score_set(TASKS).eager.fast}
    assert curve[0.0] == 5 / 8
    assert curve[0.5] == 4 / 8  # strictly above
    assert curve[1.0] == 4 / 8
    assert curve[1.05] == 3 / 8
    assert curve[3.0] == 1 / 8
    assert curve[5.0] == 0


def fastp_of_kernelbench(is_correct, baseline, actual, n, p):
    """fast_p as KernelBench defines it: the share of all n tasks that are correct and whose
    baseline time over their own is above p (arXiv 2502.10517, section 3.2)."""
    speedups = np.array([b / a for c, b, a in zip(is_correct, baseline, actual, strict=True) if c])
    return (speedups > p).sum() / n if n > 0 else 0


@pytest.mark.parametrize("seed", range(5))
def test_fast_p_is_kernelbenchs(seed):
    rng = random.Random(seed)
    correct = [rng.random() < 0.7 for _ in range(100)]
    baseline = [math.exp(rng.gauss(0, 1)) for _ in range(100)]
    actual = [b / rng.choice([0.5, 1.0, 1.5, math.exp(rng.gauss(0, 1))]) for b in baseline]
    tasks = [
        solved(f"L1/{i}", baseline[i] / actual[i]) if correct[i] else TaskScore(f"L1/{i}")
        for i in range(100)
    ]
    for p, estimate in score_set(tasks).eager.fast:
        assert estimate.value == pytest.approx(
            fastp_of_kernelbench(correct, baseline, actual, 100, p)
        )


def test_sets_are_by_level_raw_and_clean():
    tasks = [solved("L2/80", 100.0) if task == "L2/80" else TaskScore(task) for task in BOARD.tasks]
    found = score_tasks(tasks, BOARD)
    assert {name: s.tasks for name, s in found.raw.items()} == {
        "all": 250,
        "L1": 100,
        "L2": 100,
        "L3": 50,
    }
    # L2/80 is zero for every input, so it counts in the raw set alone.
    assert found.raw["L2"].correct.value == 0.01
    assert found.clean["L2"].correct.value == 0
    assert found.clean["all"].tasks == len(run_scores.clean_tasks(BOARD.tasks, "audited"))
    assert found.clean["all"].eager is None


def test_a_set_without_any_solution_has_no_mean_of_correct_ones():
    found = score_set([TaskScore("L1/1"), TaskScore("L1/2")])
    assert found.correct == Estimate(0.0, 0.0, 0.0)
    assert (found.eager, found.light_fraction, found.memory_ratio) == (None, None, None)


def test_a_correct_task_that_was_not_compared_counts_as_1():
    lone = TaskScore("L1/2", Outcome.CORRECT)
    found = score_set([solved("L1/1", 4.0), lone]).eager
    assert found.geomean_all.value == pytest.approx(2.0)
    assert found.geomean_correct.value == pytest.approx(4.0)


# --- intervals -----------------------------------------------------------------------------------


def test_intervals_hold_their_value_and_come_again():
    first, second = score_set(TASKS), score_set(TASKS)
    assert first == second
    for estimate in (first.correct, first.eager.geomean_all, *(e for _, e in first.eager.fast)):
        assert estimate.low <= estimate.value <= estimate.high


def test_a_share_s_interval_is_about_the_binomials():
    (estimate,) = Resamples(250).means([[1.0] * 100 + [0.0] * 150])
    half = 1.96 * math.sqrt(0.4 * 0.6 / 250)
    assert estimate.high - estimate.low == pytest.approx(2 * half, rel=0.1)


def test_a_means_interval_is_about_the_normals():
    rng = np.random.default_rng(0)
    values = rng.normal(1.0, 0.5, 250)
    estimate = Resamples(250).mean(list(values))
    half = 1.96 * values.std() / math.sqrt(250)
    assert estimate.high - estimate.low == pytest.approx(2 * half, rel=0.1)


def test_the_measurements_own_uncertainty_widens_an_interval():
    values = [0.5] * 100
    sharp = Resamples(100).mean(values, [0.0] * 100)
    blurred = Resamples(100).mean(values, [0.2] * 100)
    assert sharp.high - sharp.low == pytest.approx(0.0)
    # A mean of 100 with a deviation of 0.2 each, resampled: variance 0.04 / 100 * (2 - 1/100).
    half = 1.96 * 0.2 / 10 * math.sqrt(1.99)
    assert blurred.high - blurred.low == pytest.approx(2 * half, rel=0.1)


def test_a_mean_of_few_known_values():
    estimate = Resamples(50).mean([3.0, *[None] * 49])
    assert estimate == Estimate(3.0, 3.0, 3.0)
    assert Resamples(50).mean([None] * 50) is None


@pytest.mark.parametrize("speedup", [(0.0, 0.0, 0.0), (-1.0, -2.0, 1.0), (2.0, 2.5, 3.0)])
def test_a_speedup_that_cannot_be_is_refused(speedup, make_verdict):
    with pytest.raises(RecordError, match="L1/19: expected a speedup above 0 inside its interval"):
        task_score("L1/19", make_verdict(eager=speedup))


def test_a_verdict_in_a_line(make_verdict):
    verdict = make_verdict(
        eager=(2.0, 1.9, 2.1),
        compiled=(1.0, 0.9, 1.1),
        peak_memory=50,
        peak_memory_eager=100,
        energy=Measurement(1.0, 0.9, 1.1, 5, "measured"),
        energy_eager=Measurement(4.0, 3.9, 4.1, 5, "measured"),
    )
    line = task_score("L1/19", verdict)
    assert (line.eager.value, line.compile.value, line.seconds.median) == (2.0, 1.0, 1e-5)
    assert (line.memory_ratio, line.energy_ratio, line.light_fraction) == (0.5, 0.25, 0.75)


def test_thresholds_begin_with_the_correct_rate():
    assert THRESHOLDS[0] == 0.0
    assert list(THRESHOLDS) == sorted(THRESHOLDS)


# --- ranking -------------------------------------------------------------------------------------


def places(rows, **options):
    return [(r.row[0], r.place) for r in rank(rows, lambda row: row[1], **options)]


def test_ranks_by_score_and_equal_where_intervals_overlap():
    rows = [
        ("c", Estimate(1.5, 1.4, 1.6)),
        ("a", Estimate(3.0, 2.8, 3.2)),
        ("b", Estimate(2.9, 2.7, 3.1)),
        ("d", Estimate(1.0, 0.9, 1.1)),
    ]
    assert places(rows) == [("a", 1), ("b", 1), ("c", 3), ("d", 4)]


def test_overlap_is_with_the_leader_of_the_group():
    rows = [
        ("a", Estimate(3.0, 2.5, 3.5)),
        ("b", Estimate(2.4, 2.0, 2.6)),  # reaches a
        ("c", Estimate(1.9, 1.6, 2.2)),  # reaches b, but not a: leads
        ("d", Estimate(1.5, 1.2, 1.7)),  # reaches c
    ]
    assert places(rows) == [("a", 1), ("b", 1), ("c", 3), ("d", 3)]


def test_who_does_not_count_is_listed_and_moves_nobody():
    rows = [
        ("unverified", Estimate(9.0, 8.0, 10.0)),
        ("a", Estimate(3.0, 2.8, 3.2)),
        ("none", None),
        ("b", Estimate(1.0, 0.9, 1.1)),
    ]
    found = places(rows, counts=lambda row: row[0] != "unverified")
    assert found == [("unverified", None), ("a", 1), ("b", 2), ("none", None)]
