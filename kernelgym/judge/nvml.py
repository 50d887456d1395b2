"""A GPU's clocks as NVML tells them, and whether it has slowed itself down."""

from __future__ import annotations

import dataclasses
from statistics import median
from types import ModuleType
from typing import Any

__all__ = ["ClockLog", "Clocks", "open_clocks"]

# Bits of NVML's clock event reasons that mean "slower than asked for", and what they are.
_THROTTLING = (
    (0x04, "the power cap"),
    (0x08, "a hardware slowdown"),
    (0x20, "heat (software)"),
    (0x40, "heat (hardware)"),
    (0x80, "the power brake"),
)


class Clocks:
    """Reads one GPU's clocks.

    Args:
        library: The module `pynvml`, initialised.
        handle: Its handle of the GPU.

    Attributes:
        error: What a reading raises that this GPU or driver does not give.
    """

    def __init__(self, library: ModuleType | Any, handle: Any) -> None:
        self._library = library
        self._handle = handle
        self.error: type[Exception] = library.NVMLError

    def multiprocessor_mhz(self) -> float:
        """The multiprocessors' clock now."""
        kind = self._library.NVML_CLOCK_SM
        return float(self._library.nvmlDeviceGetClockInfo(self._handle, kind))

    def memory_mhz(self) -> float:
        """The memory's clock now."""
        kind = self._library.NVML_CLOCK_MEM
        return float(self._library.nvmlDeviceGetClockInfo(self._handle, kind))

    def highest_mhz(self) -> float:
        """The highest clock that the multiprocessors may have."""
        kind = self._library.NVML_CLOCK_SM
        return float(self._library.nvmlDeviceGetMaxClockInfo(self._handle, kind))

    def throttling(self) -> tuple[str, ...]:
        """What holds the clocks down now."""
        bits = int(self._library.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle))
        return tuple(name for bit, name in _THROTTLING if bits & bit)


@dataclasses.dataclass
class ClockLog:
    """Readings taken during a measurement; without `clocks` there are none."""

    clocks: Clocks | None
    readings: list[float] = dataclasses.field(default_factory=list)
    throttled: dict[str, int] = dataclasses.field(default_factory=dict)

    def read(self) -> None:
        """Takes one reading; a GPU that does not tell is not asked again."""
        if self.clocks is None:
            return
        try:
            self.readings.append(self.clocks.multiprocessor_mhz())
            for name in self.clocks.throttling():
                self.throttled[name] = self.throttled.get(name, 0) + 1
        except self.clocks.error:
            self.clocks = None

    def summary(self) -> tuple[tuple[str, float], ...]:
        """Lowest, median and highest reading, as (name, MHz)."""
        if not self.readings:
            return ()
        low, high = min(self.readings), max(self.readings)
        return (("sm_low", low), ("sm_median", median(self.readings)), ("sm_high", high))

    def notes(self) -> tuple[str, ...]:
        """What held the clocks down, and in how many of the readings."""
        count = len(self.readings)
        return tuple(
            f"clocks were held down by {name} in {times} of {count} batches"
            for name, times in sorted(self.throttled.items())
        )


def open_clocks(uuid: str) -> Clocks | None:
    """The clocks of a GPU by its UUID; None where NVML or its Python package is missing."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        name = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
        return Clocks(pynvml, pynvml.nvmlDeviceGetHandleByUUID(name))
    except pynvml.NVMLError:
        return None
