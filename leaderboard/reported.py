"""Figures that others have published: shown apart, each under its own protocol, never ranked."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kernelgym.errors import RecordError
from kernelgym.leaderboard.plain_yaml import read_mapping

__all__ = ["REPORTED", "Figures", "Reported", "ReportedProtocol", "ReportedSystem", "load_reported"]

REPORTED = Path(__file__).parent / "reported.yaml"
"""Where they are kept; see there for what each figure means."""

_VERSION = 1


@dataclasses.dataclass(frozen=True)
class ReportedProtocol:
    """How somebody else measured.

    Attributes:
        title: Whose it is.
        source: Address of the publication.
        text: What is known of it.
        device: Model of the GPU, or `""`.
    """

    title: str
    source: str
    text: str
    device: str = ""


@dataclasses.dataclass(frozen=True)
class Figures:
    """What was published for a set of tasks; None where it was not.

    Attributes:
        tasks: `"all"`, `"L1"`, `"L2"`, `"L3"`, or in words.
        correct: Share of all tasks, as the next two.
        faster_eager: Faster than eager, as the protocol counts it.
        faster_compile: Faster than `torch.compile`.
        fast_1_2: Over 1.2 times as fast as eager; the next two likewise.
        fast_1_5: Over 1.5 times.
        fast_2: Over 2 times.
        geomean_eager: Geometric mean of speedups against eager, over correct solutions.
        geomean_compile: Against `torch.compile`.
        mean_eager: Arithmetic mean against eager.
        median_eager: Median against eager.
        mean_compile: Arithmetic mean against `torch.compile`.
    """

    tasks: str
    correct: float | None = None
    faster_eager: float | None = None
    faster_compile: float | None = None
    fast_1_2: float | None = None
    fast_1_5: float | None = None
    fast_2: float | None = None
    geomean_eager: float | None = None
    geomean_compile: float | None = None
    mean_eager: float | None = None
    median_eager: float | None = None
    mean_compile: float | None = None

    def __post_init__(self) -> None:
        """Refuse shares that are none."""
        for name in ("correct", "faster_eager", "faster_compile", "fast_1_2", "fast_1_5", "fast_2"):
            share = getattr(self, name)
            if share is not None and not 0 <= share <= 1:
                raise RecordError(f"{name}: expected a share from 0 to 1, got {share}")


@dataclasses.dataclass(frozen=True)
class ReportedSystem:
    """A system and its published figures.

    Attributes:
        name: The system's.
        protocol: Name of a protocol in `Reported.protocols`.
        where: The place in the publication.
        results: One for each set of tasks.
        model: The language model, or `""`.
    """

    name: str
    protocol: str
    where: str
    results: tuple[Figures, ...]
    model: str = ""


@dataclasses.dataclass(frozen=True)
class Reported:
    """All published figures, by system and protocol."""

    protocols: Mapping[str, ReportedProtocol]
    systems: tuple[ReportedSystem, ...]
    schema_version: int = _VERSION


def load_reported(path: Path = REPORTED) -> Reported:
    """Reads the published figures.

    Raises:
        RecordError: The file is not in their form, of another version, or names no protocol.
    """
    try:
        reported = msgspec.convert(read_mapping(path.read_bytes(), str(path)), Reported)
    except (OSError, msgspec.ValidationError) as error:
        raise RecordError(f"{path}: expected published figures, got: {error}") from error
    if reported.schema_version != _VERSION:
        raise RecordError(
            f"{path}: schema_version: expected {_VERSION}, got {reported.schema_version}"
        )
    for system in reported.systems:
        if system.protocol not in reported.protocols:
            known = ", ".join(reported.protocols)
            raise RecordError(f"{path}: protocol: expected one of {known}, got {system.protocol!r}")
    return reported
