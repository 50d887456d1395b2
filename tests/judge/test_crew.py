"""Processes that work through jobs: order, losses, costs, limits."""

import multiprocessing
import time

import pytest

from kernelgym.judge.crew import Crew, Lost
from tests.judge.crew_targets import serve


class Done:
    """Collects what comes back."""

    def __init__(self, again=()):
        self.results = {}
        self.alone = {}
        self._again = list(again)

    def __call__(self, job, result, alone):
        self.results[job] = result
        self.alone[job] = alone
        if job in self._again:
            self._again.remove(job)
            return True
        return False


@pytest.fixture(autouse=True)
def nobody_is_left():
    yield
    assert multiprocessing.active_children() == []


def test_every_job_gets_its_result_and_processes_are_used_again():
    done = Done()
    with Crew(serve, ("hello",), 2) as crew:
        assert crew.run(list(range(6)), done) == 0
    assert {job: result[:2] for job, result in done.results.items()} == {
        job: ("hello", job) for job in range(6)
    }
    assert len({result[2] for result in done.results.values()}) <= 2


def test_a_process_that_dies_costs_its_job_alone():
    done = Done()
    with Crew(serve, (), 1) as crew:
        crew.run([1, "die", 2], done)
    assert done.results["die"] == Lost("the process ended with exit code 3")
    assert done.results[1][1] == 1
    assert done.results[2][2] != done.results[1][2]


def test_a_job_that_met_a_dying_process_comes_to_a_fresh_one():
    """The process dies of the job before when it has the next one already."""
    done = Done()
    with Crew(serve, (), 1) as crew:
        assert crew.run([1, "die later", 2, 3], done) == 0
    assert {job: result[1] for job, result in done.results.items()} == {
        job: job for job in (1, "die later", 2, 3)
    }
    assert done.results[2][2] != done.results[1][2]


def test_a_job_that_hangs_is_lost_after_its_time():
    done = Done()
    began = time.monotonic()
    with Crew(serve, (), 2) as crew:
        crew.run(["hang", 1], done, job_seconds=2.0)
    assert done.results["hang"] == Lost("not finished after 2 s")
    assert done.results[1][1] == 1
    assert time.monotonic() - began < 20


def test_the_time_limit_ends_it_and_says_how_many_are_left():
    done = Done()
    with Crew(serve, (), 1) as crew:
        left = crew.run([1, "sleep30", 2], done, until=time.monotonic() + 3.0)
    assert left == 2
    assert set(done.results) == {1}


def test_jobs_wait_for_room_and_what_costs_too_much_runs_alone():
    done = Done()
    costs = {"sleep0.11": 6.0, "sleep0.12": 6.0, "sleep0.13": 100.0, 1: 1.0}
    with Crew(serve, (), 3) as crew:
        assert crew.run(list(costs), done, cost=costs.__getitem__, budget=10.0) == 0
    assert set(done.results) == set(costs)
    assert done.alone["sleep0.13"]


def test_a_job_may_come_again_alone_at_the_end():
    done = Done(again=[0])
    with Crew(serve, (), 2) as crew:
        assert crew.run([0, 1, 2, 3], done) == 0
    assert done.alone[0]


def test_a_crew_that_was_made_smaller_goes_on():
    done = Done()
    with Crew(serve, (), 2) as crew:
        crew.run(["sleep0.5", "sleep0.51"], done)
        crew.shrink(1)
        crew.run([3, 4], done)
    assert done.results[3][2] == done.results[4][2]
