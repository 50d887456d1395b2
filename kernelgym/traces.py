"""Traces: episodes as JSONL that can be read back and replayed.

Each line is one record: an `EpisodeRecord` when an episode starts, then a `StepRecord` for each
turn. A file may hold many episodes, and is only ever appended to; a last line that was cut short
(the process died) is ignored by the reader and removed by the next writer.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

import msgspec

from kernelgym import edits
from kernelgym._version import __version__
from kernelgym.budget import Usage
from kernelgym.config import JudgeConfig
from kernelgym.errors import EditError, RecordError
from kernelgym.judge.verdict import Verdict
from kernelgym.workspace import Workspace

__all__ = [
    "TRACE_VERSION",
    "Episode",
    "EpisodeRecord",
    "StepRecord",
    "TraceWriter",
    "read",
    "replay",
]

TRACE_VERSION = 1


@dataclasses.dataclass(frozen=True)
class EpisodeRecord:
    """How an episode started.

    Attributes:
        episode: Number of the episode in its file, from 0.
        task: Task id.
        seed: What `reset` was given.
        workspace_hash: Of the start workspace.
        max_turns: Turns before truncation.
        reward: Name of the reward.
        reward_mode: How it is paid.
        config: How candidates were judged.
        kernelgym: Version that wrote it.
        trace_version: Version of this record.
    """

    episode: int
    task: str
    seed: int | None
    workspace_hash: str
    max_turns: int
    reward: str
    reward_mode: str
    config: JudgeConfig
    kernelgym: str = __version__
    trace_version: int = TRACE_VERSION


@dataclasses.dataclass(frozen=True)
class StepRecord:
    """One turn.

    Attributes:
        episode: Number of the episode in its file.
        turn: 1 for the first.
        action: What the agent sent.
        edit_error: Why it did not apply, or `""`.
        workspace_hash: Of the files after the turn.
        reward: What the turn paid.
        terminated: Whether the agent ended the episode.
        truncated: Whether the turn limit or a fault did.
        verdict: The judge's verdict on this turn's files; None where they were not judged.
        usage: What the agent used for the turn, where it was metered and says so.
    """

    episode: int
    turn: int
    action: str
    edit_error: str
    workspace_hash: str
    reward: float
    terminated: bool
    truncated: bool
    verdict: Verdict | None = None
    usage: Usage | None = None


@dataclasses.dataclass(frozen=True)
class Episode:
    """An episode read back; `finished` when its last turn was terminated or truncated."""

    start: EpisodeRecord
    steps: tuple[StepRecord, ...] = ()

    @property
    def finished(self) -> bool:
        """Whether the last turn ended it."""
        return bool(self.steps) and (self.steps[-1].terminated or self.steps[-1].truncated)


Record: TypeAlias = EpisodeRecord | StepRecord
_KINDS: dict[str, type[Record]] = {"episode": EpisodeRecord, "step": StepRecord}
_NAMES = {record: kind for kind, record in _KINDS.items()}


class TraceWriter:
    """Appends records to a file; a context manager.

    Args:
        path: The file. One that exists is continued: a last line cut short is removed, and
            `next_episode` counts on from what is there.

    Raises:
        RecordError: The file holds something else than traces.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        whole = _whole_lines(self.path.read_bytes() if self.path.exists() else b"")
        self.next_episode = sum(isinstance(record, EpisodeRecord) for record in _records(whole))
        self._file = self.path.open("ab")
        self._file.truncate(len(whole))

    def write(self, record: Record) -> None:
        """Appends one record and hands it to the operating system."""
        content = {"kind": _NAMES[type(record)], **msgspec.to_builtins(record)}
        # The json module escapes lone surrogates, which an action may hold and UTF-8 cannot.
        self._file.write(json.dumps(content, allow_nan=False).encode("ascii") + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Closes the file. May be called again."""
        self._file.close()

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def read(path: str | os.PathLike[str]) -> tuple[Episode, ...]:
    """All episodes of a file; a last line cut short is left out.

    Raises:
        RecordError: A line is not a record, of a version not known, or out of order.
        OSError: The file cannot be read.
    """
    episodes: list[Episode] = []
    for record in _records(_whole_lines(Path(path).read_bytes())):
        if isinstance(record, EpisodeRecord):
            if record.trace_version != TRACE_VERSION:
                raise RecordError(
                    f"trace_version: expected {TRACE_VERSION}, got {record.trace_version}"
                )
            episodes.append(Episode(record))
        elif not episodes or episodes[-1].start.episode != record.episode:
            raise RecordError(f"expected the start of episode {record.episode} before its turns")
        else:
            episodes[-1] = Episode(episodes[-1].start, (*episodes[-1].steps, record))
    return tuple(episodes)


def replay(episode: Episode, start: Workspace) -> tuple[Workspace, ...]:
    """Applies an episode's actions again, without a judge.

    Args:
        episode: What to replay.
        start: The start workspace of its task.

    Returns:
        The start workspace, and that after each turn.

    Raises:
        RecordError: A workspace differs from the one recorded: the task or the edit rules changed.
    """
    workspaces = [start]
    _expect_hash("start", episode.start.workspace_hash, start)
    for step in episode.steps:
        workspace = workspaces[-1]
        # One that did not apply left the files as they were; the hash says whether it still does.
        with contextlib.suppress(EditError):
            workspace = edits.parse(step.action).apply(workspace)
        _expect_hash(f"turn {step.turn}", step.workspace_hash, workspace)
        workspaces.append(workspace)
    return tuple(workspaces)


def _expect_hash(where: str, recorded: str, workspace: Workspace) -> None:
    if workspace.hash != recorded:
        raise RecordError(f"{where}: expected workspace {recorded[:12]}, got {workspace.hash[:12]}")


def _whole_lines(content: bytes) -> bytes:
    return content[: content.rfind(b"\n") + 1]


def _records(content: bytes) -> Iterator[Record]:
    lines: Sequence[bytes] = content.split(b"\n")[:-1]
    for number, line in enumerate(lines, 1):
        try:
            fields: Any = json.loads(line)
            kind = fields.pop("kind")
            yield msgspec.convert(fields, type=_KINDS[kind])
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise RecordError(f"line {number}: expected a trace record, got: {error}") from error
