"""Tasks as lines of JSON: one record a line, with what a synthesised task knows of itself."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator

import msgspec

from kernelgym.errors import TaskFormatError, UsageError
from kernelgym.tasks import format as task_format
from kernelgym.tasks.task import Task

__all__ = ["TaskRecord", "decode", "encode", "numbered_lines", "read_records", "read_tasks"]


@dataclasses.dataclass(frozen=True)
class TaskRecord:
    """One line of a file of tasks.

    Attributes:
        id: Unlike any other in the file.
        text: The task file, in KernelBench's form.
        name: A name to show; the id where it is empty.
        split: `"train"`, `"heldout"`, or `""` in a file that is not split.
        operators: Names of the operators that it composes, in order.
        composition: What it was split by: the operators' families, sorted.
        modelled_seconds: Modelled eager time at `full` on the device synthesised for, or None.
        measured_seconds: Measured eager time where the set was confirmed on a device, or None.
    """

    id: str
    text: str
    name: str = ""
    split: str = ""
    operators: tuple[str, ...] = ()
    composition: str = ""
    modelled_seconds: float | None = None
    measured_seconds: float | None = None

    def task(self, path: str) -> Task:
        """The record as a task that was read from `path`.

        Raises:
            TaskFormatError: The text is not in the form of a task file.
        """
        task_format.parse(self.text, path)
        name = self.name or self.id
        return Task(id=self.id, level=0, number=0, name=name, path=path, text=self.text)


def encode(record: TaskRecord) -> bytes:
    """One line, with its end."""
    return msgspec.json.encode(record) + b"\n"


def decode(line: bytes, where: str) -> TaskRecord:
    """Reads one line back.

    Args:
        line: The line.
        where: File and line number, for messages.

    Raises:
        TaskFormatError: It is not a record.
    """
    try:
        record = msgspec.json.decode(line, type=TaskRecord)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TaskFormatError(f"{where}: expected a task as a JSON object, got: {error}") from error
    if not record.id:
        raise TaskFormatError(f"{where}: id: expected a name, got an empty text")
    return record


def numbered_lines(path: pathlib.Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not blank, with their numbers from 1.

    Raises:
        TaskFormatError: The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line
    except OSError as error:
        raise TaskFormatError(f"{path}: expected a readable file of tasks, got: {error}") from error


def read_records(path: str | pathlib.Path) -> tuple[TaskRecord, ...]:
    """Every record of a file.

    Raises:
        TaskFormatError: The file cannot be read, a line is not a record, or an id comes twice; the
            message gives the line's number.
    """
    path = pathlib.Path(path)
    records: dict[str, TaskRecord] = {}
    for number, line in numbered_lines(path):
        record = decode(line, f"{path}:{number}")
        if record.id in records:
            raise TaskFormatError(
                f"{path}:{number}: id: expected a new one, got {record.id!r} again"
            )
        records[record.id] = record
    return tuple(records.values())


def read_tasks(path: str | pathlib.Path, split: str | None = None) -> tuple[Task, ...]:
    """The tasks of a file, or of one of its splits.

    Args:
        path: The file.
        split: `"train"`, `"heldout"`, or None for all.

    Raises:
        TaskFormatError: As `read_records`; or a record's text is not a task file.
        UsageError: No task has that split.
    """
    records = read_records(path)
    chosen = [record for record in records if split in (None, record.split)]
    if not chosen:
        have = ", ".join(sorted({repr(record.split) for record in records})) or "no tasks"
        raise UsageError(f"{path}: split: expected one that the file has ({have}), got {split!r}")
    return tuple(record.task(f"{path}[{record.id}]") for record in chosen)
