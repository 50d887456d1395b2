"""`Verdict`: everything the judge found out about one candidate, as one frozen record.

Times are seconds, sizes bytes. Records go to JSON and back without loss; no number is NaN or
infinite (what is not known is `None`), and every sequence is a tuple.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from typing import Any

import msgspec

from kernelgym.errors import RecordError
from kernelgym.toolchain.build import Diagnostic, KernelResources, SassSummary

__all__ = [
    "SCHEMA_VERSION",
    "Build",
    "Correctness",
    "Counters",
    "Coverage",
    "Diagnostic",
    "KernelCounters",
    "KernelResources",
    "Measurement",
    "Mismatch",
    "Outcome",
    "Provenance",
    "SassSummary",
    "Speedup",
    "Timing",
    "Verdict",
    "from_json",
    "to_json",
]

SCHEMA_VERSION = 1


class Outcome(str, enum.Enum):
    """How a judgement ended. A fault of the harness is an exception, never an outcome."""

    REJECTED = "rejected"  # breaks a rule
    COMPILE_ERROR = "compile_error"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    INCORRECT = "incorrect"
    CORRECT = "correct"
    UNSUPPORTED = "unsupported"  # the emulator cannot do what the source asks for

    def __str__(self) -> str:
        """The value, so that `f"{outcome}"` reads the same on every Python."""
        return self.value


@dataclasses.dataclass(frozen=True)
class Build:
    """How the sources became a binary.

    Attributes:
        path: The way taken: `"emulator"`, `"fast"` (the stand-in for torch's headers), `"torch"`
            (the real headers), `"nvrtc"`, a tool's name where a package calls it (`"ptxas"` for
            Triton, `"nvcc"` for PyCUDA), or `"none"` when nothing was built.
        why: Why that way was taken, when it was not the first choice.
        cached: Whether every binary came out of the cache.
        key: Content key of the (last) build.
        kernels: Resources per kernel, where a GPU compiler ran.
        warnings: Compiler warnings, mapped to the workspace.
        sass: What the machine code of each kernel is made of, where counters were asked for and
            cuobjdump is there.
    """

    path: str
    cached: bool = False
    key: str = ""
    why: str = ""
    kernels: tuple[KernelResources, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    sass: tuple[SassSummary, ...] = ()


@dataclasses.dataclass(frozen=True)
class Mismatch:
    """The worst element of a wrong output."""

    index: tuple[int, ...]
    expected: float | None
    got: float | None


@dataclasses.dataclass(frozen=True)
class Correctness:
    """What the check found.

    Attributes:
        draws: Input draws that ran.
        passed: Draws within the budget.
        error: Largest error in units of the budget (1.0 is the limit), or None (nothing compared,
            or not finite).
        bad_elements: Elements beyond the budget in the first failing draw.
        elements: Elements compared per draw.
        worst: The worst element of the first failing draw.
        pattern: What the errors have in common, such as `"all errors in the last 31 columns"`.
        generalises: Whether a second shape passed too; None if not tried.
        deterministic: Whether two runs on one input agreed within the budget; None if not tried.
    """

    draws: int
    passed: int
    error: float | None = None
    bad_elements: int = 0
    elements: int = 0
    worst: Mismatch | None = None
    pattern: str = ""
    generalises: bool | None = None
    deterministic: bool | None = None


@dataclasses.dataclass(frozen=True)
class Measurement:
    """A time in seconds, with its 95 % interval.

    Attributes:
        median: Seconds per call.
        low: Lower end of the interval.
        high: Upper end of the interval.
        batches: Batches behind the median; 0 when modelled.
        source: `"measured"`, `"stored"` (a measured baseline from the store), `"modelled"`, or
            `"replayed"` (measured or stored earlier, read from a tape).
        host_span: Host time per call, where measured.
    """

    median: float
    low: float
    high: float
    batches: int
    source: str
    host_span: float | None = None


@dataclasses.dataclass(frozen=True)
class Speedup:
    """Baseline time over candidate time, with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class Timing:
    """The candidate's time, the baselines', and what follows from them.

    Attributes:
        candidate: Time of one call of the candidate.
        eager: Time of one call of the reference in eager mode; None if not asked for.
        compile: The same under `torch.compile`.
        speedup_eager: eager / candidate.
        speedup_compile: compile / candidate.
        light_fraction: The least time that physics allows over the candidate's time, at most 1.
        clocks: Clock readings as (name, MHz) pairs, where read.
        notes: What a reader of the times should know: held-down clocks, a stored baseline of
            another driver, a baseline that did not run.
    """

    candidate: Measurement
    eager: Measurement | None = None
    compile: Measurement | None = None
    speedup_eager: Speedup | None = None
    speedup_compile: Speedup | None = None
    light_fraction: float | None = None
    clocks: tuple[tuple[str, float], ...] = ()
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class KernelCounters:
    """Counters of one kernel, summed over its launches in one call.

    Attributes:
        name: The kernel, or `"total"` for the sum.
        owner: `"own"`, `"library"` or `"foreign"`; `"all"` for the sum.
        launches: Launches in one call.
        time: Device seconds in one call.
        share: Share of the call's device time, 0 to 1.
        values: (name, value) pairs; names as in `docs/judge.md`.
    """

    name: str
    owner: str
    launches: int
    time: float
    share: float
    values: tuple[tuple[str, float], ...] = ()

    def get(self, name: str) -> float | None:
        """The counter's value, or None when it was not counted."""
        return dict(self.values).get(name)


@dataclasses.dataclass(frozen=True)
class Counters:
    """Counters per kernel and summed.

    Attributes:
        source: `"emulated"`, `"cupti"` (hardware counters), or `"activity"` (times and launches
            alone).
        total: The whole call.
        kernels: By kernel.
        sampled: Whether some launches, or blocks of them, were not counted.
        note: What else a reader should know, such as why there are no hardware counters.
    """

    source: str
    total: KernelCounters
    kernels: tuple[KernelCounters, ...] = ()
    sampled: bool = False
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Coverage:
    """Device time of one call split by who owns the code: fractions that sum to 1."""

    own: float
    library: float
    foreign: float


@dataclasses.dataclass(frozen=True)
class Provenance:
    """Where and under which rules a verdict was reached.

    `device_uuid` tells one GPU from another of its model; it is empty on the emulator.
    """

    kernelgym: str
    torch: str
    device: str
    protocol: str
    ruleset: str
    precision: str
    size: str
    mode: str = ""
    driver: str = ""
    cuda: str = ""
    compiler: str = ""
    salt_commitment: str = ""
    protection: str = ""
    protections: tuple[str, ...] = ()
    device_uuid: str = ""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What the judge says of one candidate. See the module's docstring for units.

    Attributes:
        task: Task id, such as `"L1/19"`.
        outcome: How it ended.
        reason: Stable code of why (`"rule.torch_compute"`, `"check.tail"`, …), `""` when correct.
        message: One or two sentences for a reader.
        source_hash: SHA-256 over the workspace's files, hexadecimal.
        peak_memory: Bytes that one call of the candidate takes at most, where known.
        peak_memory_eager: The same for the reference.
        energy: Joules of one call of the candidate, where measured.
        energy_eager: The same for the reference.
        seconds: (phase, seconds) pairs of the judgement itself.
    """

    task: str
    outcome: Outcome
    reason: str
    message: str
    source_hash: str
    provenance: Provenance
    diagnostics: tuple[Diagnostic, ...] = ()
    build: Build | None = None
    correctness: Correctness | None = None
    timing: Timing | None = None
    counters: Counters | None = None
    coverage: Coverage | None = None
    peak_memory: int | None = None
    peak_memory_eager: int | None = None
    energy: Measurement | None = None
    energy_eager: Measurement | None = None
    output: str = ""
    seconds: tuple[tuple[str, float], ...] = ()
    schema_version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        """Refuse numbers that JSON cannot carry."""
        _refuse_non_finite(self, "verdict")

    @property
    def correct(self) -> bool:
        """Whether the outcome is `correct`."""
        return self.outcome is Outcome.CORRECT


def to_json(verdict: Verdict) -> str:
    """The verdict as one line of JSON."""
    return msgspec.json.encode(verdict).decode()


def from_json(text: str | bytes) -> Verdict:
    """Reads what `to_json` wrote.

    Raises:
        RecordError: The text is not a verdict, or of a schema version that is not known.
    """
    try:
        version = msgspec.json.decode(text, type=_Versioned).schema_version
        if version != SCHEMA_VERSION:
            raise RecordError(f"schema_version: expected {SCHEMA_VERSION}, got {version}")
        return msgspec.json.decode(text, type=Verdict)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise RecordError(f"expected a verdict as JSON, got: {error}") from error


class _Versioned(msgspec.Struct):
    schema_version: int


def _refuse_non_finite(value: Any, where: str) -> None:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise RecordError(f"{where}: expected a finite number, got {value}")
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            _refuse_non_finite(item, f"{where}[{index}]")
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            _refuse_non_finite(getattr(value, field.name), f"{where}.{field.name}")
