"""Joules of one call, read from the GPU's own counter while calls are repeated.

NVML's counter of total energy is the whole board's: what the GPU draws when idle is part of it, and
so is what other processes have it do. It moves some ten times a second, so a window lasts at least
two seconds. The grader reads it, and says how many calls a window has; see `docs/judge.md` for what
that leaves to a candidate.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

from kernelgym.errors import EnvironmentFault
from kernelgym.judge.verdict import Measurement

__all__ = ["EnergyCounter", "EnergyPair", "compare_energy"]

_WINDOW_SECONDS = 2.0
_PROBE_SECONDS = 0.1
_MOST_CALLS = 10**6
# Candidate and baseline change places in between, so that slow changes (heat) meet both.
_ORDER = (0, 1, 1, 0, 0, 1)
# Two-sided 95 % of Student's t with one degree less than there are windows.
_STUDENT = 4.303

Repeat = Callable[[int], None]


@dataclasses.dataclass(frozen=True)
class EnergyPair:
    """Joules a call; None where they were not measured."""

    candidate: Measurement | None = None
    eager: Measurement | None = None


class EnergyCounter:
    """A GPU's counter of energy, through NVML.

    Args:
        uuid: The GPU's, with or without `"GPU-"` before it.
        nvml: The module that speaks to NVML; `pynvml` by default.

    Raises:
        EnvironmentFault: It is not to be had; the message says what brings it.
    """

    def __init__(self, uuid: str, nvml: Any = None) -> None:
        self._nvml = nvml or _pynvml()
        try:
            self._nvml.nvmlInit()
            self._handle = self._nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid.removeprefix('GPU-')}")
            self.joules()
        except self._nvml.NVMLError as error:
            raise EnvironmentFault(f"energy: NVML gives no counter of {uuid}: {error}") from error

    def joules(self) -> float:
        """What the GPU has drawn since its driver was loaded."""
        return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)) * 1e-3

    def close(self) -> None:
        """Lets go of NVML."""
        self._nvml.nvmlShutdown()


def compare_energy(
    counter: EnergyCounter,
    candidate: Repeat,
    eager: Repeat,
    *,
    least_seconds: float = 0.0,
    clock: Callable[[], float] = time.monotonic,
) -> EnergyPair:
    """Measures the joules of a call of each side, in turns.

    Args:
        counter: The GPU's.
        candidate: Makes so many calls of the candidate, and returns when they have ended.
        eager: The same of the reference.
        least_seconds: What a call takes at least; a candidate that is faster did not do its work,
            and gets no figure.
        clock: Seconds.

    Returns:
        Both, as medians over windows with a 95 % interval from their spread.
    """
    sides = (candidate, eager)
    calls = [_calls(side, clock) for side in sides]
    joules: tuple[list[float], list[float]] = ([], [])
    fastest = math.inf
    for index in _ORDER:
        before, began = counter.joules(), clock()
        sides[index](calls[index])
        spent = clock() - began
        joules[index].append((counter.joules() - before) / calls[index])
        if index == 0:
            fastest = min(fastest, spent / calls[0])
    mine = None if fastest < least_seconds else _measurement(joules[0])
    return EnergyPair(mine, _measurement(joules[1]))


def _calls(repeat: Repeat, clock: Callable[[], float]) -> int:
    """How many calls fill a window."""
    calls = 1
    while True:
        began = clock()
        repeat(calls)
        spent = clock() - began
        if spent >= _PROBE_SECONDS or calls >= _MOST_CALLS:
            # The calls that were timed were the first ones, so the later ones may be faster.
            wanted = math.ceil(1.1 * calls * _WINDOW_SECONDS / max(spent, 1e-9))
            return min(wanted, _MOST_CALLS)
        calls = min(_MOST_CALLS, math.ceil(calls * min(2 * _PROBE_SECONDS / max(spent, 1e-6), 100)))


def _measurement(joules: list[float]) -> Measurement:
    middle = statistics.median(joules)
    half = _STUDENT * statistics.stdev(joules) / math.sqrt(len(joules))
    return Measurement(middle, max(middle - half, 0.0), middle + half, len(joules), "measured")


def _pynvml() -> Any:
    if importlib.util.find_spec("pynvml") is None:
        raise EnvironmentFault(
            "energy: expected the module pynvml, which reads the GPU's counter, got none; "
            "pip install nvidia-ml-py brings it"
        )
    return importlib.import_module("pynvml")
