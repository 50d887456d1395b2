"""An append-only log whose records are chained by SHA-256: what was written stays as it was.

A line is JSON, with sorted keys and without spaces:

::

    {"hash": H, "index": N, "previous": P, "record": {...}}

where P is the hash of the line before (64 zeros in the first) and H the SHA-256 of the same line
without its `hash`. Changing, dropping or exchanging lines breaks the chain. What it cannot show is
that lines are missing at the end: for that, keep the last hash elsewhere and give it to `verify`.
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from kernelgym.errors import RecordError

__all__ = ["GENESIS", "ChainedLog", "Link", "links", "read", "verify"]

GENESIS = "0" * 64
"""What the first record has in place of its predecessor's hash."""

ResultT = TypeVar("ResultT")


@dataclasses.dataclass(frozen=True)
class Link:
    """One record of a log, with its place in the chain."""

    index: int
    previous: str
    hash: str
    record: dict[str, Any]


class ChainedLog:
    """Appends to a chained log; safe to use from several threads and processes.

    A record is on disk when `append` returns. A last line without its end, as a kill or a power
    failure leaves it, was never reported as written and is removed.

    Args:
        path: The log; made when the first record comes.

    Raises:
        RecordError: The file is no chained log, or its chain is broken.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._head = GENESIS
        self._count = 0
        self._end = 0  # bytes of the file that are known to be good
        if self.path.exists():
            self._locked(self._catch_up)

    def __len__(self) -> int:
        """How many records there are, as far as this object has seen."""
        return self._count

    @property
    def head(self) -> str:
        """The hash of the last record that this object has seen."""
        return self._head

    def append(self, record: dict[str, Any]) -> str:
        """Adds a record.

        Args:
            record: Of what JSON can say, without NaN and infinities.

        Returns:
            Its hash, hexadecimal.

        Raises:
            RecordError: JSON cannot say it, or somebody else has broken the log.
        """
        try:
            plain = json.loads(_canonical(record))
        except (TypeError, ValueError) as error:
            raise RecordError(f"record: expected what JSON can say, got: {error}") from error
        if not isinstance(plain, dict):
            raise RecordError(f"record: expected a mapping, got {type(record).__name__}")

        def write(file: BinaryIO) -> str:
            self._catch_up(file)
            line = _line(self._count, self._head, plain)
            file.seek(self._end)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
            self._count, self._head = self._count + 1, json.loads(line)["hash"]
            self._end += len(line)
            return self._head

        return self._locked(write)

    def _locked(self, action: Callable[[BinaryIO], ResultT]) -> ResultT:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Neither truncating nor in append mode: a torn line has to be removed.
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with self._lock, os.fdopen(descriptor, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
            return action(file)

    def _catch_up(self, file: BinaryIO) -> None:
        """Reads what others have appended, and removes a line that was cut off."""
        file.seek(self._end)
        data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        for link in _links(whole.splitlines(), str(self.path), self._count, self._head):
            self._count, self._head = link.index + 1, link.hash
        self._end += len(whole)
        if len(whole) < len(data):
            file.truncate(self._end)


def read(path: str | os.PathLike[str]) -> Iterator[Link]:
    """The records of a log, in order, each after it has been verified.

    Raises:
        RecordError: A line does not continue the chain; the message names it.
        OSError: There is no such file.
    """
    yield from links(Path(path).read_bytes(), str(path))


def links(data: bytes, name: str) -> Iterator[Link]:
    """The records in a log's content, in order, each after it has been verified.

    Args:
        data: The whole content.
        name: What messages call it.

    Raises:
        RecordError: A line does not continue the chain; the message names it.
    """
    if data and not data.endswith(b"\n"):
        count = data.count(b"\n") + 1
        yield from _links(data.splitlines()[:-1], name, 0, GENESIS)
        raise RecordError(f"{name}:{count}: expected a whole line, got one that is cut off")
    yield from _links(data.splitlines(), name, 0, GENESIS)


def verify(path: str | os.PathLike[str], head: str | None = None) -> int:
    """Verifies a whole log.

    Args:
        path: The log.
        head: The hash that its last record must have, where that is known; without it, records
            that are missing at the end go unnoticed.

    Returns:
        The number of records.

    Raises:
        RecordError: The first line that is wrong, by its number; or the head is another.
        OSError: There is no such file.
    """
    count, last = 0, GENESIS
    for link in read(path):
        count, last = link.index + 1, link.hash
    if head is not None and head != last:
        raise RecordError(f"{path}: expected the last hash to be {head}, got {last}")
    return count


def _links(lines: list[bytes], name: str, index: int, previous: str) -> Iterator[Link]:
    for line in lines:
        where = f"{name}:{index + 1}"
        try:
            entry = json.loads(line)
            record, link_hash = entry["record"], entry["hash"]
            expected = _line(index, previous, record)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise RecordError(f"{where}: expected a record of a chained log: {error}") from error
        # Byte for byte: no second way to write a record, such as a key given twice, is let in.
        if line + b"\n" != expected:
            raise RecordError(f"{where}: the chain is broken: {_why(entry, index, previous)}")
        yield Link(index, previous, link_hash, record)
        index, previous = index + 1, link_hash


def _why(entry: dict[str, Any], index: int, previous: str) -> str:
    for field, expected in (("index", index), ("previous", previous)):
        if entry.get(field) != expected:
            return f"expected {field} {expected}, got {entry.get(field)}"
    return "its hash is not that of its record"


def _line(index: int, previous: str, record: dict[str, Any]) -> bytes:
    entry: dict[str, Any] = {"index": index, "previous": previous, "record": record}
    digest = hashlib.sha256(_canonical(entry)).hexdigest()
    return _canonical({**entry, "hash": digest}) + b"\n"


def _canonical(value: Any) -> bytes:
    """JSON in the one form that is hashed: sorted keys, no spaces, ASCII, no NaN."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")
