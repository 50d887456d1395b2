"""Reading entries from disk, where anybody may have written them.

What is read is bounded before it is read, links are not followed, and nothing but an entry's own
files may lie in its folder. Everything that is wrong is a `RecordError` that names the file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kernelgym.errors import EditError, RecordError, UsageError
from kernelgym.judge import chain
from kernelgym.judge.verdict import SCHEMA_VERSION, Verdict
from kernelgym.leaderboard.board import Board
from kernelgym.leaderboard.entry import (
    ENTRY_VERSION,
    BudgetUsed,
    Entry,
    EntryInfo,
    Environment,
    TaskResult,
    Verification,
)
from kernelgym.leaderboard.plain_yaml import read_mapping
from kernelgym.workspace import Workspace

__all__ = [
    "ENTRY_FILE",
    "ENVIRONMENT_FILE",
    "SOLUTIONS",
    "TRACES",
    "VERDICTS_FILE",
    "VERIFICATION_FILE",
    "content_hash",
    "entry_folders",
    "find_entry",
    "load_entry",
    "read_files",
    "task_folder",
    "task_of_folder",
]

ENTRY_FILE = "entry.yaml"
VERDICTS_FILE = "verdicts.jsonl"
ENVIRONMENT_FILE = "environment.json"
VERIFICATION_FILE = "verification.json"
SOLUTIONS = "solutions"
TRACES = "traces"

_MAX_BYTES = {
    ENTRY_FILE: 64 * 2**10,
    VERDICTS_FILE: 64 * 2**20,
    ENVIRONMENT_FILE: 2**20,
    VERIFICATION_FILE: 2**20,
}
_MAX_SOLUTION_BYTES = 2**20
_MAX_TRACE_BYTES = 64 * 2**20
_MAX_TOTAL_BYTES = 256 * 2**20
_MAX_FILES = 10_000
_MAX_DEPTH = 8
_FOLDER_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_TASK_FOLDER = re.compile(r"L([1-3])-(\d{3})")

RecordT = TypeVar("RecordT")


def entry_folders(root: str | os.PathLike[str]) -> tuple[Path, ...]:
    """The folders of all entries below `entries/`, sorted; reads none of them.

    Raises:
        RecordError: Something else lies there.
    """
    found: list[Path] = []
    for board in _subfolders(Path(root)):
        found.extend(_subfolders(board))
    return tuple(found)


def find_entry(name: str, root: str | os.PathLike[str]) -> Path:
    """The folder of an entry that is named by its path, its id, or its last part where it is unique.

    Raises:
        UsageError: There is none, or several.
    """
    if (Path(name) / ENTRY_FILE).is_file():
        return Path(name)
    folders = entry_folders(root) if Path(root).is_dir() else ()
    fits = [f for f in folders if name in (f.name, f"{f.parent.name}/{f.name}")]
    if len(fits) != 1:
        got = f"{len(fits)} of that name" if fits else "none"
        raise UsageError(
            f"expected the folder or the name of an entry in {root}, got {name!r}: {got}"
        )
    return fits[0]


def load_entry(folder: str | os.PathLike[str]) -> Entry:
    """Reads an entry and holds its parts against each other.

    Checked are its form, the chain of its verdicts, that each verdict is about the sources beside
    it, and that all were reached under the rules of its board. What needs more than the entry is
    `kernelgym.leaderboard.checks`.

    Raises:
        RecordError: Something is not as it should be; names the file and what was expected.
    """
    root = Path(folder)
    if not _FOLDER_NAME.fullmatch(root.name):
        raise RecordError(
            f"{root}: expected a folder's name of lower-case letters, digits and single dashes"
        )
    files = read_files(root)
    info = _entry_info(_part(files, root, ENTRY_FILE), str(root / ENTRY_FILE))
    environment = _record(files, root, ENVIRONMENT_FILE, Environment)
    stamp = None
    if VERIFICATION_FILE in files:
        stamp = _record(files, root, VERIFICATION_FILE, Verification)
    _part(files, root, VERDICTS_FILE)
    verdicts = _verdicts(root / VERDICTS_FILE, environment)
    results = _results(root, verdicts, _solutions(root, files), info)
    return Entry(
        folder=root,
        info=info,
        results=results,
        environment=environment,
        verification=stamp,
        content=content_hash(files),
        traces=tuple(root / name for name in files if name.startswith(f"{TRACES}/")),
    )


def read_files(root: Path) -> dict[str, bytes]:
    """Every file of an entry: path relative to its folder to content, sorted by path.

    Raises:
        RecordError: A link or a device, something that does not belong there, or too much.
    """
    if root.is_symlink() or not root.is_dir():
        raise RecordError(f"{root}: expected the folder of an entry")
    found: dict[str, bytes] = {}
    total = 0
    for path in _walk(root, 0):
        name = path.relative_to(root).as_posix()
        limit = _limit_of(name)
        if limit is None:
            raise RecordError(f"{path}: expected only files of an entry, got {name}")
        size = path.lstat().st_size
        total += size
        if size > limit:
            raise RecordError(f"{path}: expected at most {limit} bytes, got {size}")
        if total > _MAX_TOTAL_BYTES or len(found) >= _MAX_FILES:
            raise RecordError(
                f"{root}: expected at most {_MAX_TOTAL_BYTES} bytes in {_MAX_FILES} files"
            )
        found[name] = path.read_bytes()
    return {name: found[name] for name in sorted(found)}


def content_hash(files: Mapping[str, bytes]) -> str:
    """SHA-256 over an entry's files but its stamp: paths and contents, hexadecimal."""
    digest = hashlib.sha256()
    for name in sorted(files):
        if name != VERIFICATION_FILE:
            for part in (name.encode("utf-8", "surrogateescape"), files[name]):
                digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def task_folder(task: str) -> str:
    """The name of a task's folder: `"L1-019"` for `"L1/19"`."""
    level, _, number = task.partition("/")
    return f"{level}-{int(number):03d}"


def task_of_folder(name: str) -> str | None:
    """The id of the task that a folder is named after; None for another name."""
    match = _TASK_FOLDER.fullmatch(name)
    return f"L{match[1]}/{int(match[2])}" if match else None


def _entry_info(data: bytes, where: str) -> EntryInfo:
    fields = read_mapping(data, where)
    _expect_version(fields.get("schema_version"), where)
    _expect_fields(fields, EntryInfo, where)
    for name, kind in (("board", Board), ("budget", BudgetUsed)):
        if isinstance(fields.get(name), dict):
            _expect_fields(fields[name], kind, f"{where}: {name}")
    try:
        return msgspec.convert(fields, EntryInfo)
    except (msgspec.ValidationError, UsageError) as error:
        raise RecordError(f"{where}: {error}") from error
    except (TypeError, RecursionError) as error:  # keys or values that are no data at all
        raise RecordError(f"{where}: expected an entry's fields, got: {error}") from error


def _expect_fields(fields: Mapping[str, Any], kind: type, where: str) -> None:
    known = sorted(field.name for field in dataclasses.fields(kind))
    for name in fields:
        if name not in known:
            raise RecordError(f"{where}: expected one of {', '.join(known)}, got {name!r}")


def _expect_version(version: object, where: str, known: int = ENTRY_VERSION) -> None:
    if version != known or isinstance(version, bool):
        newer = isinstance(version, int) and version > known
        why = " (written by a newer kernelgym; update yours)" if newer else ""
        raise RecordError(f"{where}: schema_version: expected {known}, got {version!r}{why}")


def _record(files: Mapping[str, bytes], root: Path, name: str, kind: type[RecordT]) -> RecordT:
    where = str(root / name)
    data = _part(files, root, name)
    try:
        raw = msgspec.json.decode(data)
        _expect_version(raw.get("schema_version") if isinstance(raw, dict) else None, where)
        return msgspec.convert(raw, kind)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        if isinstance(error, RecordError) and str(error).startswith(where):
            raise
        raise RecordError(f"{where}: expected {kind.__name__} as JSON, got: {error}") from error


def _part(files: Mapping[str, bytes], root: Path, name: str) -> bytes:
    if name not in files:
        raise RecordError(f"{root}: expected {name}, got no such file")
    return files[name]


def _verdicts(path: Path, environment: Environment) -> dict[str, Verdict]:
    found: dict[str, Verdict] = {}
    count, head = 0, chain.GENESIS
    for link in chain.read(path):
        count, head = link.index + 1, link.hash
        where = f"{path}:{count}"
        _expect_version(link.record.get("schema_version"), where, SCHEMA_VERSION)
        try:
            verdict = msgspec.convert(link.record, Verdict)
        except (msgspec.ValidationError, RecordError, RecursionError) as error:
            raise RecordError(f"{where}: expected a verdict, got: {error}") from error
        if verdict.task in found:
            raise RecordError(f"{where}: expected each task once, got {verdict.task} again")
        found[verdict.task] = verdict
    if (count, head) != (environment.verdicts, environment.head):
        raise RecordError(
            f"{path}: expected {environment.verdicts} verdicts up to {environment.head[:12]}, as "
            f"{ENVIRONMENT_FILE} says, got {count} up to {head[:12]}"
        )
    return found


def _solutions(root: Path, files: Mapping[str, bytes]) -> dict[str, Workspace]:
    texts: dict[str, dict[str, str]] = {}
    for name, data in files.items():
        top, _, rest = name.partition("/")
        if top == SOLUTIONS:
            folder, _, path = rest.partition("/")
            task = task_of_folder(folder)
            if task is None or not path:
                raise RecordError(f"{root / name}: expected {SOLUTIONS}/L<level>-<number>/<file>")
            try:
                texts.setdefault(task, {})[path] = data.decode("utf-8")
            except UnicodeDecodeError as error:
                raise RecordError(f"{root / name}: expected UTF-8, got: {error}") from error
    found = {}
    for task, sources in texts.items():
        try:
            found[task] = Workspace(sources)
        except EditError as error:
            raise RecordError(f"{root / SOLUTIONS / task_folder(task)}: {error}") from error
    return found


def _results(
    root: Path,
    verdicts: Mapping[str, Verdict],
    solutions: Mapping[str, Workspace],
    info: EntryInfo,
) -> tuple[TaskResult, ...]:
    board = info.board
    order = {task: place for place, task in enumerate(board.tasks)}
    where = root / VERDICTS_FILE
    if not verdicts:
        raise RecordError(f"{where}: expected at least one verdict, got none")
    for task in solutions.keys() - verdicts.keys():
        raise RecordError(f"{where}: expected a verdict on {task}, whose solution is there")
    for task, verdict in verdicts.items():
        if task not in order:
            raise RecordError(f"{where}: expected tasks of {board.task_set}, got {task!r}")
        if task not in solutions:
            raise RecordError(f"{root / SOLUTIONS / task_folder(task)}: expected the files judged")
        if verdict.source_hash != solutions[task].hash:
            raise RecordError(
                f"{root / SOLUTIONS / task_folder(task)}: expected the files that the verdict on "
                f"{task} is about ({verdict.source_hash[:12]}), got others "
                f"({solutions[task].hash[:12]}): a swapped or edited solution"
            )
    return tuple(
        TaskResult(task, verdicts[task], solutions[task].files)
        for task in sorted(verdicts, key=order.__getitem__)
    )


def _limit_of(name: str) -> int | None:
    """The most bytes that a file of an entry may have; None for what does not belong there."""
    if name in _MAX_BYTES:
        return _MAX_BYTES[name]
    top, slash, _ = name.partition("/")
    limits = {SOLUTIONS: _MAX_SOLUTION_BYTES, TRACES: _MAX_TRACE_BYTES}
    return limits.get(top) if slash else None


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    if depth > _MAX_DEPTH:
        raise RecordError(f"{folder}: expected folders at most {_MAX_DEPTH} deep")
    with os.scandir(folder) as items:
        for item in sorted(items, key=lambda item: item.name):
            if item.is_symlink() or not (item.is_file() or item.is_dir()):
                raise RecordError(f"{item.path}: expected a plain file or folder, got a link")
            if item.is_dir():
                yield from _walk(Path(item.path), depth + 1)
            else:
                yield Path(item.path)


def _subfolders(root: Path) -> list[Path]:
    if not root.is_dir() or root.is_symlink():
        raise RecordError(f"{root}: expected a folder of entries")
    # Hidden folders are drafts of submissions under way.
    visible = (path for path in root.iterdir() if not path.name.startswith("."))
    found = sorted(path for path in visible if path.name != "README.md")
    for path in found:
        if path.is_symlink() or not path.is_dir():
            raise RecordError(f"{path}: expected a folder, got something else")
    return found
