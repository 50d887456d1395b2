"""The audit's records: what passed under which rule, in a file that is kept with the tasks."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Mapping

import msgspec

from kernelgym import tasks
from kernelgym.config import PROTOCOLS
from kernelgym.errors import RecordError, UsageError
from kernelgym.judge.tolerances import fixed_tolerance

__all__ = ["RECORDS", "ProtocolAudit", "TaskAudit", "clean_ids", "load", "merge", "save"]

RECORDS = pathlib.Path(tasks.__file__).parent / "audit.json"
"""Where the records of the catalogue are kept."""


@dataclasses.dataclass(frozen=True)
class ProtocolAudit:
    """What passed under one rule.

    Attributes:
        protocol: One of `kernelgym.config.PROTOCOLS`.
        tolerance: Of a fixed rule, relative and absolute; None for the error budget. `kernelbench`
            is tried with both of its tolerances, 1e-4 and (for half types) 1e-2.
        passing: Names of the answers that passed every draw.
    """

    protocol: str
    tolerance: float | None
    passing: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class TaskAudit:
    """What was found for one task at one size.

    Attributes:
        task: Its id.
        size: Which shapes.
        device: Model name of the device, or `"cpu"`.
        date: Day of the audit, ISO 8601, UTC.
        versions: Of torch and kernelgym.
        draws: Number of draws that an answer had to pass.
        seconds: What the audit took.
        results: One entry a rule; none where `error` says why.
        error: Why the reference could not be run; `""` where it could.
    """

    task: str
    size: str
    device: str
    date: str
    versions: dict[str, str]
    draws: int
    seconds: float
    results: tuple[ProtocolAudit, ...]
    error: str = ""

    def passing(self, protocol: str, tolerance: float | None = None) -> tuple[str, ...]:
        """The answers that passed under a protocol.

        Args:
            protocol: One of `kernelgym.config.PROTOCOLS`.
            tolerance: Which of a protocol's tolerances; None for the one of fp32.

        Raises:
            UsageError: The record has no such entry.
        """
        if tolerance is None:
            tolerance = fixed_tolerance(protocol, "default")
        for result in self.results:
            if (result.protocol, result.tolerance) == (protocol, tolerance):
                return result.passing
        raise UsageError(
            f"expected a protocol and tolerance that {self.task} was audited under at {self.size}, "
            f"got {protocol!r} and {tolerance}"
        )


def load(path: pathlib.Path = RECORDS) -> dict[tuple[str, str], TaskAudit]:
    """The records of a file, by (task, size).

    Raises:
        RecordError: It cannot be read, or is not a file of records.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        records = msgspec.convert(document["records"], tuple[TaskAudit, ...])
    except (OSError, ValueError, KeyError, TypeError, msgspec.ValidationError) as error:
        raise RecordError(f"{path}: expected a file of audit records, got: {error}") from error
    return {(record.task, record.size): record for record in records}


def save(records: Mapping[tuple[str, str], TaskAudit], path: pathlib.Path = RECORDS) -> None:
    """Writes records to a file, one a line, in the order of the catalogue."""
    from kernelgym.judge.trivial import ANSWERS  # imports torch, which reading does without

    ordered = sorted(records.values(), key=lambda r: (_order(r.task), r.size))
    lines = [json.dumps(dataclasses.asdict(record)) for record in ordered]
    body = ",\n".join(lines)
    text = f'{{"answers": {json.dumps(ANSWERS)},\n"records": [\n{body}\n]}}\n'
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def merge(source: pathlib.Path, target: pathlib.Path = RECORDS) -> int:
    """Takes the records of one file into another; returns how many.

    A record without an error is not replaced by one with an error.

    Raises:
        RecordError: One of them is not a file of records.
    """
    new = load(source)
    records = load(target) if target.exists() else {}
    taken = {
        key: record
        for key, record in new.items()
        if not record.error or key not in records or records[key].error
    }
    save({**records, **taken}, target)
    return len(taken)


def clean_ids(protocol: str = "audited", path: pathlib.Path = RECORDS) -> tuple[str, ...]:
    """The tasks that a protocol can score: no trivial answer passed, at any size audited.

    Scores are reported twice: over all 250 tasks, and over these.

    Args:
        protocol: One of `kernelgym.config.PROTOCOLS`.
        path: The file of records.

    Raises:
        UsageError: No such protocol, or a task was not audited at any size.
        RecordError: The file is not one of records.
    """
    if protocol not in PROTOCOLS:
        raise UsageError(f"protocol: expected one of {', '.join(PROTOCOLS)}, got {protocol!r}")
    records = load(path)
    clean = []
    for task_id in tasks.ids():
        own = [r for (known, _), r in records.items() if known == task_id and not r.error]
        if not own:
            raise UsageError(f"{path}: expected an audit of {task_id}, got none")
        unscorable = tasks.get(task_id).judge_statement("UNSCORABLE", "")
        if not unscorable and not any(record.passing(protocol) for record in own):
            clean.append(task_id)
    return tuple(clean)


def _order(task_id: str) -> tuple[str, int, str]:
    level, _, number = task_id.partition("/")
    return level, int(number) if number.isdigit() else 0, task_id
