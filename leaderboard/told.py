"""The verdicts that a trace tells, found without reading all of what it says.

A trace of 250 tasks holds thousands of records; `kernelgym.traces` makes objects of all of them. Here
a line is parsed as far as is needed to know what its verdict is about.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kernelgym.errors import RecordError
from kernelgym.judge.verdict import Verdict

__all__ = ["Told", "told"]


class _Line(msgspec.Struct):
    kind: str
    verdict: msgspec.Raw = msgspec.Raw(b"null")


class _About(msgspec.Struct):
    task: str
    source_hash: str


class Told(msgspec.Struct, frozen=True):
    """A verdict in a trace.

    Attributes:
        task: Task id.
        source_hash: Of the files that it is about.
        text: The verdict as JSON.
    """

    task: str
    source_hash: str
    text: bytes

    def verdict(self) -> Verdict:
        """The verdict in full.

        Raises:
            RecordError: It is none.
        """
        try:
            return msgspec.json.decode(self.text, type=Verdict)
        except msgspec.DecodeError as error:
            raise RecordError(f"{self.task}: expected a verdict, got: {error}") from error


def told(path: Path) -> Iterator[Told]:
    """The verdicts of a trace, in order; a last line cut short is left out.

    Raises:
        RecordError: A line is no record of a trace.
    """
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
        try:
            record = _parsed(line)
            if record.kind == "step" and bytes(record.verdict) != b"null":
                about = msgspec.json.decode(record.verdict, type=_About)
                yield Told(about.task, about.source_hash, bytes(record.verdict))
        except (ValueError, KeyError, RecursionError) as error:
            raise RecordError(
                f"{path}:{number}: expected a trace's record, got: {error}"
            ) from error


def _parsed(line: bytes) -> _Line:
    try:
        return msgspec.json.decode(line, type=_Line)
    except msgspec.DecodeError:
        # An action may hold lone surrogates, which msgspec does not take.
        content = json.loads(line)
        if not isinstance(content, dict):
            raise
        verdict = json.dumps(content.get("verdict")).encode()
        return _Line(str(content["kind"]), msgspec.Raw(verdict))
