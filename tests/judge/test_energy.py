from __future__ import annotations

from typing import Any

import pytest

from kernelgym.errors import EnvironmentFault
from kernelgym.judge import energy
from kernelgym.judge.energy import EnergyCounter, compare_energy

UUID = "0123-4567"


class Board:
    """A GPU in simulated time: calls take seconds and joules, idling takes joules."""

    class NVMLError(Exception):
        pass

    def __init__(self, *, idle_watts: float = 0.0, broken: bool = False) -> None:
        self.now = 0.0
        self.used = 1000.0
        self.idle_watts = idle_watts
        self.broken = broken
        self.open = 0
        self.asked = ""
        self.windows: list[tuple[str, int]] = []

    def spend(self, seconds: float, joules: float) -> None:
        self.now += seconds
        self.used += joules + self.idle_watts * seconds

    def side(self, name: str, seconds: float, joules: float) -> Any:
        def repeat(calls: int) -> None:
            self.windows.append((name, calls))
            self.spend(calls * seconds, calls * joules)

        return repeat

    def nvmlInit(self) -> None:
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        self.asked = uuid
        return "handle"

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:
        if self.broken:
            raise self.NVMLError("Not Supported")
        return round(self.used * 1000)  # millijoules


def test_both_sides_are_measured_in_turns() -> None:
    board = Board(idle_watts=100.0)
    counter = EnergyCounter(UUID, board)
    assert board.asked == "GPU-0123-4567"
    mine, eager = board.side("mine", 1e-3, 0.3), board.side("eager", 4e-3, 0.8)
    pair = compare_energy(counter, mine, eager, clock=lambda: board.now)
    assert pair.candidate is not None
    assert pair.eager is not None
    # The board's own draw is part of it.
    assert pair.candidate.median == pytest.approx(0.3 + 0.1, rel=1e-4)
    assert pair.eager.median == pytest.approx(0.8 + 0.4, rel=1e-4)
    assert pair.candidate.low <= pair.candidate.median <= pair.candidate.high
    assert pair.candidate.batches == 3
    windows = board.windows[-6:]
    assert [name for name, _ in windows] == ["mine", "eager", "eager", "mine", "mine", "eager"]
    # Two seconds each at least, for the counter moves slowly.
    assert all(calls * (1e-3 if name == "mine" else 4e-3) >= 2.0 for name, calls in windows)
    counter.close()
    assert board.open == 0


def test_the_interval_covers_windows_that_differ() -> None:
    board = Board()
    noise = iter([0.0, 0.2, 0.1, 0.3, 0.0, 0.1])

    def mine(calls: int) -> None:
        board.spend(calls * 0.1, calls * (1.0 + (next(noise) if calls > 10 else 0.0)))

    pair = compare_energy(
        EnergyCounter(UUID, board), mine, board.side("eager", 0.1, 1.0), clock=lambda: board.now
    )
    assert pair.candidate is not None
    assert pair.candidate.low < 1.0
    assert pair.candidate.high > 1.2


def test_a_candidate_that_is_faster_than_light_gets_no_figure() -> None:
    board = Board()
    pair = compare_energy(
        EnergyCounter(UUID, board),
        board.side("mine", 1e-6, 1e-6),
        board.side("eager", 1e-3, 0.1),
        least_seconds=1e-4,
        clock=lambda: board.now,
    )
    assert pair.candidate is None
    assert pair.eager is not None
    # However fast it says it is, it is not asked for ever more calls.
    assert max(calls for _, calls in board.windows) <= 10**6


def test_a_gpu_without_a_counter_is_a_fault() -> None:
    with pytest.raises(EnvironmentFault, match="0123-4567: Not Supported"):
        EnergyCounter(UUID, Board(broken=True))


def test_without_the_module_the_fault_says_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(energy.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EnvironmentFault, match="pip install nvidia-ml-py"):
        EnergyCounter(UUID)
