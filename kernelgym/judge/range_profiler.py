"""Hardware counters of the kernels of one call, through CUPTI's range profiler.

What to count is planned without a GPU (`CounterPlan`): the plan holds the configuration image that
CUPTI would otherwise compute in each new process. Counting itself happens in the process whose
kernels are counted (`RangeProfiler`): CUPTI makes a range of each kernel and replays it once for each
pass, saving and restoring the memory that it writes. A kernel is slower while a session is open, so
nothing is timed then.

The driver may keep the counters from ordinary users (`profiling_restricted`).
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import math
import pathlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kernelgym.judge.cupti import Cupti, CuptiError, KernelNames, demangler
from kernelgym.judge.metrics import ALTERNATIVES

__all__ = [
    "CounterPlan",
    "Counts",
    "LaunchCounts",
    "RangeProfiler",
    "chip_of",
    "make_plan",
    "profiling_restricted",
]

_RANGE_PROFILER = 0
_AUTO_RANGE, _KERNEL_REPLAY = 1, 2
_FEWEST_RANGES, _MOST_RANGES = 16, 256
_DRIVER_PARAMETERS = pathlib.Path("/proc/driver/nvidia/params")


@dataclasses.dataclass(frozen=True)
class CounterPlan:
    """What is counted on one chip, and how.

    Attributes:
        library: Path of CUPTI, which made the plan and is to use it.
        chip: CUPTI's name of the chip, such as `"GH100"`.
        names: Short names of what is counted; see `kernelgym.judge.metrics`.
        metrics: CUPTI's name of each.
        image: The configuration.
        passes: How often each kernel runs.
    """

    library: str
    chip: str
    names: tuple[str, ...]
    metrics: tuple[str, ...]
    image: bytes
    passes: int


@dataclasses.dataclass(frozen=True)
class LaunchCounts:
    """One launch: the kernel's name (`""` where it is not known), and a value for each metric.

    A value that the hardware did not deliver is None.
    """

    name: str
    values: tuple[float | None, ...]


@dataclasses.dataclass(frozen=True)
class Counts:
    """The launches of one call.

    Attributes:
        launches: In their order.
        complete: Whether these are all.
        seconds: (step, seconds) pairs of what the counting took.
    """

    launches: tuple[LaunchCounts, ...]
    complete: bool
    seconds: tuple[tuple[str, float], ...] = ()


def profiling_restricted(parameters: pathlib.Path = _DRIVER_PARAMETERS) -> bool | None:
    """Whether the driver lets only privileged processes count; None where it does not tell.

    Args:
        parameters: The driver's list of its settings.
    """
    try:
        match = re.search(r"^RmProfilingAdminOnly:\s*(\d+)", parameters.read_text(), re.MULTILINE)
    except OSError:
        return None
    return match is not None and match[1] != "0"


def chip_of(cupti: Cupti, index: int) -> str:
    """CUPTI's name of a GPU's chip.

    Args:
        cupti: The library.
        index: Of the GPU, as CUDA counts them.

    Raises:
        CuptiError: There is no such GPU.
        OSError: There is no driver.
    """
    # Without a driver, and before it is initialised, CUPTI does not fail: it crashes.
    ctypes.CDLL("libcuda.so.1").cuInit(0)
    cupti.call("cuptiProfilerInitialize")
    name = cupti.call("cuptiDeviceGetChipName", deviceIndex=index).pChipName
    return str((name or b"").decode())


def make_plan(cupti: Cupti, chip: str, names: Sequence[str] = tuple(ALTERNATIVES)) -> CounterPlan:
    """Plans what to count; needs no GPU.

    Args:
        cupti: The library.
        chip: The chip, by CUPTI's name.
        names: What is wanted, of `metrics.METRICS`; what the chip does not have is left out.

    Raises:
        CuptiError: CUPTI does not know the chip.
    """
    with _host(cupti, chip) as host:
        chosen: dict[str, str] = {}
        for name in names:
            for metric in ALTERNATIVES[name]:
                if _has(cupti, host, metric):
                    chosen[name] = metric
                    break
        _add(cupti, host, tuple(chosen.values()))
        size = cupti.call("cuptiProfilerHostGetConfigImageSize", pHostObject=host).configImageSize
        image = ctypes.create_string_buffer(size)
        address = ctypes.addressof(image)
        cupti.call(
            "cuptiProfilerHostGetConfigImage",
            pHostObject=host,
            configImageSize=size,
            pConfigImage=address,
        )
        passes = cupti.call(
            "cuptiProfilerHostGetNumOfPasses", configImageSize=size, pConfigImage=address
        ).numOfPasses
    return CounterPlan(
        cupti.path, chip, tuple(chosen), tuple(chosen.values()), image.raw, int(passes)
    )


class RangeProfiler:
    """Counts in this process, on the GPU that is current in the calling thread.

    Opening it loads CUPTI's tables and touches no GPU.

    Args:
        plan: What to count.

    Raises:
        CuptiError: CUPTI does not know the plan's chip or metrics.
        OSError: The library cannot be opened.
    """

    def __init__(self, plan: CounterPlan) -> None:
        self._plan = plan
        self._cupti = Cupti(plan.library)
        self._host = _new_host(self._cupti, plan.chip)
        # Values can be computed of metrics that the host object knows.
        _add(self._cupti, self._host, plan.metrics)

    def count(
        self, call: Callable[[], Any], synchronize: Callable[[], Any], names: Sequence[str] = ()
    ) -> Counts:
        """Counts the kernels of one call.

        Args:
            call: Launches kernels; called once.
            synchronize: Waits for them.
            names: Names of the kernels that such a call launches, in their order, for want of a
                better source.

        Raises:
            CuptiError: The counters are not to be had; see `CuptiError.forbidden`.
            OSError: There is no driver.
        """
        context = _current_context()
        clock = _Clock()
        room = min(max(2 * len(names), _FEWEST_RANGES), _MOST_RANGES)
        with KernelNames(self._cupti) as seen:
            image, dropped = self._session(context, call, synchronize, room, clock)
        with clock("evaluate"):
            values = list(self._evaluated(image))
        launched = list(map(demangler(), seen.names)) if seen.active else list(names)
        if len(launched) != len(values):
            # A graph's kernels have no names of their own.
            fits = len(launched) > len(values) == room
            launched = launched[:room] if fits else [""] * len(values)
        return Counts(
            tuple(LaunchCounts(n, v) for n, v in zip(launched, values, strict=True)),
            complete=dropped == 0 and len(values) < room,
            seconds=clock.laps(),
        )

    def _session(
        self,
        context: int,
        call: Callable[[], Any],
        synchronize: Callable[[], Any],
        room: int,
        clock: _Clock,
    ) -> tuple[ctypes.Array[ctypes.c_char], int]:
        """Runs the call with counters on: the counter data, and how many ranges were dropped."""
        cupti, plan = self._cupti, self._plan
        with clock("initialize"):
            cupti.call("cuptiProfilerInitialize")
        with clock("enable"):
            enabled = cupti.call("cuptiRangeProfilerEnable", ctx=context)
        profiler = enabled.pRangeProfilerObject
        try:
            with clock("configure"):
                metrics = _names(plan.metrics)
                size = cupti.call(
                    "cuptiRangeProfilerGetCounterDataSize",
                    pRangeProfilerObject=profiler,
                    pMetricNames=metrics,
                    numMetrics=len(plan.metrics),
                    maxNumOfRanges=room,
                    maxNumRangeTreeNodes=room,
                ).counterDataSize
                data = ctypes.create_string_buffer(size)
                cupti.call(
                    "cuptiRangeProfilerCounterDataImageInitialize",
                    pRangeProfilerObject=profiler,
                    counterDataSize=size,
                    pCounterData=ctypes.addressof(data),
                )
                config = ctypes.create_string_buffer(plan.image, len(plan.image))
                cupti.call(
                    "cuptiRangeProfilerSetConfig",
                    pRangeProfilerObject=profiler,
                    configSize=len(plan.image),
                    pConfig=ctypes.addressof(config),
                    counterDataImageSize=size,
                    pCounterDataImage=ctypes.addressof(data),
                    range=_AUTO_RANGE,
                    replayMode=_KERNEL_REPLAY,
                    maxRangesPerPass=room,
                    numNestingLevels=1,
                    minNestingLevel=1,
                    passIndex=0,
                    targetNestingLevel=1,
                )
            with clock("start"):
                cupti.call("cuptiRangeProfilerStart", pRangeProfilerObject=profiler)
            with clock("run"):
                try:
                    call()
                    synchronize()
                finally:
                    cupti.call("cuptiRangeProfilerStop", pRangeProfilerObject=profiler)
            with clock("decode"):
                decoded = cupti.call("cuptiRangeProfilerDecodeData", pRangeProfilerObject=profiler)
        finally:
            with clock("disable"):
                cupti.call("cuptiRangeProfilerDisable", pRangeProfilerObject=profiler)
        return data, int(decoded.numOfRangeDropped)

    def _evaluated(self, data: ctypes.Array[ctypes.c_char]) -> Iterator[tuple[float | None, ...]]:
        cupti, plan = self._cupti, self._plan
        place = {
            "pCounterDataImage": ctypes.addressof(data),
            "counterDataImageSize": ctypes.sizeof(data),
        }
        ranges = cupti.call("cuptiRangeProfilerGetCounterDataInfo", **place).numTotalRanges
        metrics = _names(plan.metrics)
        for index in range(ranges):
            values = (ctypes.c_double * len(plan.metrics))()
            cupti.call(
                "cuptiProfilerHostEvaluateToGpuValues",
                pHostObject=self._host,
                rangeIndex=index,
                ppMetricNames=metrics,
                numMetrics=len(plan.metrics),
                pMetricValues=values,
                **place,
            )
            yield tuple(value if math.isfinite(value) else None for value in values)


class _Clock:
    """Seconds of named steps."""

    def __init__(self) -> None:
        self._laps: dict[str, float] = {}

    @contextlib.contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self._laps[step] = time.perf_counter() - started

    def laps(self) -> tuple[tuple[str, float], ...]:
        return tuple(self._laps.items())


@contextlib.contextmanager
def _host(cupti: Cupti, chip: str) -> Iterator[int]:
    host = _new_host(cupti, chip)
    try:
        yield host
    finally:
        cupti.call("cuptiProfilerHostDeinitialize", pHostObject=host)


def _new_host(cupti: Cupti, chip: str) -> int:
    made = cupti.call(
        "cuptiProfilerHostInitialize", profilerType=_RANGE_PROFILER, pChipName=chip.encode()
    )
    return int(made.pHostObject)


def _has(cupti: Cupti, host: int, metric: str) -> bool:
    try:
        cupti.call(
            "cuptiProfilerHostGetMetricProperties", pHostObject=host, pMetricName=metric.encode()
        )
    except CuptiError:
        return False
    return True


def _add(cupti: Cupti, host: int, metrics: Sequence[str]) -> None:
    cupti.call(
        "cuptiProfilerHostConfigAddMetrics",
        pHostObject=host,
        ppMetricNames=_names(metrics),
        numMetrics=len(metrics),
    )


def _names(metrics: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * len(metrics))(*(metric.encode() for metric in metrics))


def _current_context() -> int:
    """The CUDA context of the calling thread."""
    context = ctypes.c_void_p()
    ctypes.CDLL("libcuda.so.1").cuCtxGetCurrent(ctypes.byref(context))
    return int(context.value or 0)
