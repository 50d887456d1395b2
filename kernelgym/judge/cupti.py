"""CUPTI through ctypes: its host half (metrics, configurations) and its range profiler.

Only what `kernelgym.judge.range_profiler` needs is declared. CUPTI's functions take one record each,
whose first field is its size; that makes them safe to call from any version of the headers, so that
nothing is compiled and no header is needed. `Cupti` needs no GPU by itself: metrics and
configurations of any chip can be asked for anywhere.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable, Iterator
from ctypes import (
    POINTER,
    c_char_p,
    c_double,
    c_int,
    c_size_t,
    c_uint8,
    c_uint16,
    c_uint32,
    c_void_p,
)
from pathlib import Path
from typing import Any

from kernelgym.errors import KernelGymError

__all__ = ["RECORDS", "Cupti", "CuptiError", "KernelNames", "demangler", "find_cupti"]

_INSUFFICIENT_PRIVILEGES = (35, 40)
_ERRORS = {
    1: "invalid parameter",
    2: "invalid device",
    3: "invalid context",
    7: "invalid operation",
    8: "out of memory",
    9: "hardware error",
    13: "not ready",
    15: "not initialised",
    17: "no such metric on this chip",
    26: "the counters are in use by another profiler",
    27: "not supported",
    35: "insufficient privileges (ERR_NVGPUCTRPERM)",
    36: "CUPTI's old profiler was used before",
    38: "this GPU is too old or too new for this profiler",
    39: "another tool watches this process",
    40: "insufficient privileges for a virtual GPU",
    41: "not supported with confidential computing",
    42: "not supported on a mining card",
    43: "not supported on a MIG instance",
    46: "this CUPTI does not know the chip",
}
_LOADED = re.compile(r"(/\S*/libcupti\.so\.\S+)$", re.MULTILINE)
_DRIVER_API = 1
_API_ENTER = 0
# cuLaunchKernel, cuLaunchCooperativeKernel, cuLaunchKernelEx, each also with a stream per thread;
# and cuGraphLaunch, which has no name of its own.
_LAUNCHES = (307, 442, 477, 478, 652, 653, 514, 515)


class CuptiError(KernelGymError):
    """A function of CUPTI's failed.

    Attributes:
        function: Its name.
        code: Its `CUptiResult`.
    """

    def __init__(self, function: str, code: int) -> None:
        super().__init__(f"{function}: {_ERRORS.get(code, 'failed')} (CUPTI error {code})")
        self.function = function
        self.code = code

    @property
    def forbidden(self) -> bool:
        """Whether the driver keeps its counters from this process."""
        return self.code in _INSUFFICIENT_PRIVILEGES


def _record(name: str, *fields: tuple[str, Any]) -> type[Any]:
    """A parameter record; `structSize` and `pPriv` come first in all of them."""
    head = [("structSize", c_size_t), ("pPriv", c_void_p)]
    return type(name, (ctypes.Structure,), {"_fields_": [*head, *fields]})


_HOST = ("pHostObject", c_void_p)
_PROFILER = ("pRangeProfilerObject", c_void_p)
_NAMES = POINTER(c_char_p)

RECORDS: dict[str, type[Any]] = {
    "cuptiProfilerInitialize": _record("CUpti_Profiler_Initialize_Params"),
    "cuptiDeviceGetChipName": _record(
        "CUpti_Device_GetChipName_Params", ("deviceIndex", c_size_t), ("pChipName", c_char_p)
    ),
    "cuptiProfilerHostGetSupportedChips": _record(
        "CUpti_Profiler_Host_GetSupportedChips_Params",
        ("numChips", c_size_t),
        ("ppChipNames", _NAMES),
    ),
    "cuptiProfilerHostInitialize": _record(
        "CUpti_Profiler_Host_Initialize_Params",
        ("profilerType", c_int),
        ("pChipName", c_char_p),
        ("pCounterAvailabilityImage", c_void_p),
        _HOST,
    ),
    "cuptiProfilerHostDeinitialize": _record("CUpti_Profiler_Host_Deinitialize_Params", _HOST),
    "cuptiProfilerHostGetMetricProperties": _record(
        "CUpti_Profiler_Host_GetMetricProperties_Params",
        _HOST,
        ("pMetricName", c_char_p),
        ("pDescription", c_char_p),
        ("pHwUnit", c_char_p),
        ("pDimUnit", c_char_p),
        ("metricType", c_int),
    ),
    "cuptiProfilerHostConfigAddMetrics": _record(
        "CUpti_Profiler_Host_ConfigAddMetrics_Params",
        _HOST,
        ("ppMetricNames", _NAMES),
        ("numMetrics", c_size_t),
    ),
    "cuptiProfilerHostGetConfigImageSize": _record(
        "CUpti_Profiler_Host_GetConfigImageSize_Params", _HOST, ("configImageSize", c_size_t)
    ),
    "cuptiProfilerHostGetConfigImage": _record(
        "CUpti_Profiler_Host_GetConfigImage_Params",
        _HOST,
        ("configImageSize", c_size_t),
        ("pConfigImage", c_void_p),
    ),
    "cuptiProfilerHostGetNumOfPasses": _record(
        "CUpti_Profiler_Host_GetNumOfPasses_Params",
        ("configImageSize", c_size_t),
        ("pConfigImage", c_void_p),
        ("numOfPasses", c_size_t),
    ),
    "cuptiProfilerHostEvaluateToGpuValues": _record(
        "CUpti_Profiler_Host_EvaluateToGpuValues_Params",
        _HOST,
        ("pCounterDataImage", c_void_p),
        ("counterDataImageSize", c_size_t),
        ("rangeIndex", c_size_t),
        ("ppMetricNames", _NAMES),
        ("numMetrics", c_size_t),
        ("pMetricValues", POINTER(c_double)),
    ),
    "cuptiProfilerGetCounterAvailability": _record(
        "CUpti_Profiler_GetCounterAvailability_Params",
        ("ctx", c_void_p),
        ("counterAvailabilityImageSize", c_size_t),
        ("pCounterAvailabilityImage", c_void_p),
    ),
    "cuptiRangeProfilerEnable": _record(
        "CUpti_RangeProfiler_Enable_Params", ("ctx", c_void_p), _PROFILER
    ),
    "cuptiRangeProfilerDisable": _record("CUpti_RangeProfiler_Disable_Params", _PROFILER),
    "cuptiRangeProfilerGetCounterDataSize": _record(
        "CUpti_RangeProfiler_GetCounterDataSize_Params",
        _PROFILER,
        ("pMetricNames", _NAMES),
        ("numMetrics", c_size_t),
        ("maxNumOfRanges", c_size_t),
        ("maxNumRangeTreeNodes", c_uint32),
        ("counterDataSize", c_size_t),
    ),
    "cuptiRangeProfilerCounterDataImageInitialize": _record(
        "CUpti_RangeProfiler_CounterDataImage_Initialize_Params",
        _PROFILER,
        ("counterDataSize", c_size_t),
        ("pCounterData", c_void_p),
    ),
    "cuptiRangeProfilerSetConfig": _record(
        "CUpti_RangeProfiler_SetConfig_Params",
        _PROFILER,
        ("configSize", c_size_t),
        ("pConfig", c_void_p),
        ("counterDataImageSize", c_size_t),
        ("pCounterDataImage", c_void_p),
        ("range", c_int),
        ("replayMode", c_int),
        ("maxRangesPerPass", c_size_t),
        ("numNestingLevels", c_uint16),
        ("minNestingLevel", c_uint16),
        ("passIndex", c_size_t),
        ("targetNestingLevel", c_uint16),
    ),
    "cuptiRangeProfilerStart": _record("CUpti_RangeProfiler_Start_Params", _PROFILER),
    "cuptiRangeProfilerStop": _record(
        "CUpti_RangeProfiler_Stop_Params",
        _PROFILER,
        ("passIndex", c_size_t),
        ("targetNestingLevel", c_size_t),
        ("isAllPassSubmitted", c_uint8),
    ),
    "cuptiRangeProfilerDecodeData": _record(
        "CUpti_RangeProfiler_DecodeData_Params", _PROFILER, ("numOfRangeDropped", c_size_t)
    ),
    "cuptiRangeProfilerGetCounterDataInfo": _record(
        "CUpti_RangeProfiler_GetCounterDataInfo_Params",
        ("pCounterDataImage", c_void_p),
        ("counterDataImageSize", c_size_t),
        ("numTotalRanges", c_size_t),
    ),
}
"""The record that each function takes, laid out as in CUPTI's headers."""


def _stated_size(record: type[Any]) -> int:
    """What `structSize` is to be: up to the last field, without what pads a record at its end."""
    last = getattr(record, record._fields_[-1][0])
    return int(last.offset + last.size)


class _CallbackData(ctypes.Structure):
    _fields_ = (
        ("callbackSite", c_int),
        ("functionName", c_char_p),
        ("functionParams", c_void_p),
        ("functionReturnValue", c_void_p),
        ("symbolName", c_char_p),
    )


_Callback = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_uint32, POINTER(_CallbackData))


def find_cupti() -> str | None:
    """Where CUPTI is: the one that torch has loaded, else its wheel's, else the toolkit's.

    Returns:
        None where it is nowhere.
    """
    return next((str(path) for path in _places() if path.is_file()), None)


def _places() -> Iterator[Path]:
    # A process must not hold two copies of it.
    yield from (Path(path) for path in _LOADED.findall(Path("/proc/self/maps").read_text()))
    for packages in map(Path, filter(None, sys.path)):
        yield from sorted(packages.glob("nvidia/*/lib/libcupti.so.1[23]"), reverse=True)
    for folder in (Path("/usr/local/cuda"), *sorted(Path("/usr/local").glob("cuda-1[23]*"))):
        for inside in ("extras/CUPTI/lib64", "lib64", "lib"):
            yield from sorted((folder / inside).glob("libcupti.so.1[23]"), reverse=True)


class Cupti:
    """The library, opened in this process.

    Args:
        path: Where it is; see `find_cupti`.

    Raises:
        OSError: It cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.library = ctypes.CDLL(path)

    def version(self) -> int:
        """Its version, such as 130001.

        Raises:
            CuptiError: It does not tell.
        """
        number = c_uint32()
        self.expect("cuptiGetVersion", self.library.cuptiGetVersion(ctypes.byref(number)))
        return number.value

    def call(self, function: str, **fields: Any) -> Any:
        """Calls one of `RECORDS`' functions.

        Args:
            function: Its name.
            fields: Fields of its record.

        Returns:
            The record, filled in.

        Raises:
            CuptiError: It failed, or this version of the library does not have it.
        """
        record = RECORDS[function](**fields)
        record.structSize = _stated_size(type(record))
        try:
            implementation = getattr(self.library, function)
        except AttributeError:
            raise CuptiError(function, 27) from None
        self.expect(function, implementation(ctypes.byref(record)))
        return record

    @staticmethod
    def expect(function: str, code: int) -> None:
        """Raises `CuptiError` unless a function succeeded."""
        if code != 0:
            raise CuptiError(function, code)


class KernelNames:
    """Notes the name of each kernel that this process launches; a context manager.

    Attributes:
        names: Mangled names in the order of launches; `""` for a graph.
        active: Whether launches are seen: a process has room for one such listener.
    """

    def __init__(self, cupti: Cupti) -> None:
        self._library = cupti.library
        self._subscriber = c_void_p()
        self._callback = _Callback(self._note)
        self.names: list[str] = []
        self.active = False

    def __enter__(self) -> KernelNames:
        code = self._library.cuptiSubscribe(
            ctypes.byref(self._subscriber), self._callback, c_void_p()
        )
        self.active = code == 0
        if self.active:
            for identifier in _LAUNCHES:
                self._library.cuptiEnableCallback(
                    c_uint32(1), self._subscriber, _DRIVER_API, identifier
                )
        return self

    def __exit__(self, *exception: object) -> None:
        if self.active:
            self._library.cuptiUnsubscribe(self._subscriber)

    def _note(self, user: int, domain: int, identifier: int, data: Any) -> None:
        if data[0].callbackSite == _API_ENTER:
            self.names.append((data[0].symbolName or b"").decode("utf-8", "replace"))


def demangler() -> Callable[[str], str]:
    """A function that turns a mangled C++ name into a readable one, and leaves others as they are."""
    library = ctypes.CDLL("libstdc++.so.6")
    demangle, free = library.__cxa_demangle, ctypes.CDLL(None).free
    demangle.restype = c_void_p
    demangle.argtypes = (c_char_p, c_void_p, c_void_p, POINTER(c_int))
    free.argtypes = (c_void_p,)

    def readable(name: str) -> str:
        status = c_int()
        text = demangle(name.encode(), None, None, ctypes.byref(status))
        if not text:
            return name
        try:
            return ctypes.string_at(text).decode("utf-8", "replace")
        finally:
            free(text)

    return readable
