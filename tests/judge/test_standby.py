"""Processes that are kept ahead; what opening a GPU would be is nothing on a CPU."""

from __future__ import annotations

import contextlib
import time

import pytest

from kernelgym.judge import protocol
from kernelgym.judge.process import Zygote
from kernelgym.judge.standby import Standby


def setup(scratch):
    return protocol.Setup(target="emulator", variant="fast", scratch=str(scratch))


@pytest.fixture(scope="module")
def zygote():
    made = Zygote()
    yield made
    made.close()


@pytest.fixture
def standby(zygote):
    made = Standby(zygote, setup, protocol.Begin(), contextlib.nullcontext, count=2)
    yield made
    made.close()


def until(condition, seconds=30.0):
    limit = time.monotonic() + seconds
    while not condition() and time.monotonic() < limit:
        time.sleep(0.02)
    return condition()


def test_one_is_made_where_none_is_ready(standby):
    waiting = standby.take()
    assert waiting.candidate.running()
    assert waiting.scratch.is_dir()
    standby.give_back(waiting)
    assert until(lambda: not waiting.scratch.exists())


def test_as_many_as_asked_for_are_kept_ahead(standby):
    standby.refill()
    assert until(lambda: len(standby._ready) == 2)
    waiting = standby.take()
    assert len(standby._ready) == 1
    standby.give_back(waiting)
    assert until(lambda: len(standby._ready) == 2)
    assert not waiting.candidate.running()


def test_one_that_has_ended_is_not_given_out(standby):
    standby.refill()
    assert until(lambda: len(standby._ready) == 2)
    first = standby._ready[0]
    first.candidate.kill()
    assert until(lambda: not first.candidate.running())
    taken = standby.take()
    standby.give_back(taken)
    assert taken is not first
    assert not first.scratch.exists()


def test_closing_ends_all_and_may_come_twice(zygote):
    standby = Standby(zygote, setup, protocol.Begin(), contextlib.nullcontext, count=2)
    standby.refill()
    assert until(lambda: standby._ready)
    kept = [*standby._ready]
    standby.close()
    standby.close()
    assert not any(waiting.candidate.running() for waiting in kept)
    assert not any(waiting.scratch.exists() for waiting in kept)


def test_they_are_made_only_in_our_turn(zygote):
    entered = []

    @contextlib.contextmanager
    def turn():
        entered.append(True)
        yield
        entered.append(False)

    standby = Standby(zygote, setup, protocol.Begin(), turn, count=1)
    standby.refill()
    assert until(lambda: entered == [True, False])
    standby.close()
