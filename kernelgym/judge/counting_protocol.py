"""What grader and candidate say of hardware counters and energy; part of `kernelgym.judge.protocol`."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

from kernelgym.judge.range_profiler import CounterPlan

__all__ = ["Count", "Counted", "CountedLaunch", "Repeat", "Repeated"]


@dataclasses.dataclass(frozen=True)
class Count:
    """Run `forward` once more with hardware counters on; comes after `Profile`."""

    inputs: tuple[Any, ...]
    seed: int
    plan: CounterPlan


@dataclasses.dataclass(frozen=True)
class Repeat:
    """Run `forward` so many times in a row."""

    inputs: tuple[Any, ...]
    seed: int
    calls: int


class CountedLaunch(msgspec.Struct, frozen=True):
    """One launch: the kernel's name, `""` where unknown, and the plan's metrics in their order."""

    name: str
    values: tuple[float | None, ...]


class Counted(msgspec.Struct, tag=True, frozen=True):
    """Hardware counters of one call; `complete` unless some launches were left out."""

    launches: tuple[CountedLaunch, ...]
    complete: bool
    seconds: tuple[tuple[str, float], ...] = ()


class Repeated(msgspec.Struct, tag=True, frozen=True):
    """The calls have ended."""
