"""A run's scores in a line, against values worked out by hand; more in tests/leaderboard."""

from kernelgym.scores import clean_tasks, in_a_line, score_set, task_score


def test_a_failure_counts_as_one(make_verdict):
    verdicts = {
        "L1/19": make_verdict(eager=(4.0, 3.9, 4.1)),
        "L1/23": make_verdict(eager=(0.5, 0.4, 0.6)),
        "L1/26": None,
        "L1/36": make_verdict(eager=(1.02, 0.99, 1.05)),
    }
    found = score_set([task_score(task, verdict) for task, verdict in verdicts.items()])
    # (4 x 0.5 x 1 x 1.02) to the power of 1/4
    assert in_a_line(found) == "3 of 4 correct, 1 faster than eager, geometric mean 1.20x"


def test_nothing_compared_has_no_mean(make_verdict):
    found = score_set([task_score("L1/19", None), task_score("L1/23", make_verdict())])
    assert in_a_line(found) == "1 of 2 correct"


def test_the_clean_tasks_leave_out_the_unscorable_and_the_unknown():
    assert clean_tasks(["L2/79", "L2/80", "L2/83", "mine"], "audited") == ("L2/79",)
    assert "L1/19" not in clean_tasks(["L1/19", "L1/1"], "kernelbench")
