"""Clocks by a library that is a fake, and their summary."""

import sys
import types

from kernelgym.judge.nvml import ClockLog, Clocks, open_clocks


class Library(types.ModuleType):
    """The part of pynvml that is used; its clock falls by 10 MHz a reading."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM = 1, 2

    class NVMLError(Exception):
        pass

    def __init__(self, bits=0, broken=False):
        super().__init__("pynvml")
        self._mhz = 2000
        self._bits = bits
        self._broken = broken
        self.asked = None

    def nvmlInit(self):
        if self._broken:
            raise self.NVMLError("no driver")

    def nvmlDeviceGetHandleByUUID(self, uuid):
        self.asked = uuid
        return "handle"

    def nvmlDeviceGetClockInfo(self, handle, kind):
        if self._broken:
            raise self.NVMLError("not supported")
        self._mhz -= 10
        return self._mhz if kind == self.NVML_CLOCK_SM else 3201

    def nvmlDeviceGetMaxClockInfo(self, handle, kind):
        return 1980

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle):
        return self._bits


def test_readings_are_summed_up_and_what_held_clocks_down_is_counted():
    log = ClockLog(Clocks(Library(bits=0x4 | 0x40 | 0x1), "handle"))
    for _ in range(3):
        log.read()
    assert dict(log.summary()) == {"sm_low": 1970.0, "sm_median": 1980.0, "sm_high": 1990.0}
    assert log.notes() == (
        "clocks were held down by heat (hardware) in 3 of 3 batches",
        "clocks were held down by the power cap in 3 of 3 batches",
    )


def test_an_idle_card_is_not_throttled():
    assert Clocks(Library(bits=0x1), "handle").throttling() == ()


def test_a_card_that_does_not_tell_is_not_asked_again():
    log = ClockLog(Clocks(Library(broken=True), "handle"))
    log.read()
    log.read()
    assert log.clocks is None
    assert log.summary() == log.notes() == ()


def test_a_card_is_found_by_its_uuid(monkeypatch):
    library = Library()
    monkeypatch.setitem(sys.modules, "pynvml", library)
    clocks = open_clocks("12-34")
    assert library.asked == "GPU-12-34"
    assert (clocks.memory_mhz(), clocks.highest_mhz()) == (3201.0, 1980.0)
    open_clocks("GPU-56")
    assert library.asked == "GPU-56"


def test_without_the_package_or_a_driver_there_are_no_clocks(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", Library(broken=True))
    assert open_clocks("12") is None
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert open_clocks("12") is None
