"""`Workspace`: the files that an agent edits, as an immutable snapshot with its history."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import functools
import hashlib
import io
import re
import tokenize
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

from kernelgym.errors import EditError, TaskFormatError

__all__ = [
    "MAIN_FILE",
    "MAX_FILES",
    "MAX_FILE_BYTES",
    "MAX_TOTAL_BYTES",
    "REFERENCE_FILE",
    "SUFFIXES",
    "TaskSource",
    "Workspace",
    "check_path",
]

MAIN_FILE = "model_new.py"
REFERENCE_FILE = "reference.py"
SUFFIXES = (".py", ".cu", ".cuh", ".cpp", ".h", ".hpp", ".inl")
MAX_FILES = 64
MAX_FILE_BYTES = 2**20
MAX_TOTAL_BYTES = 4 * 2**20

_MAX_PATH = 200
# No segment starts with a dot (no "..", no hidden file) or a dash (no compiler option).
_SEGMENT = r"[A-Za-z0-9_][A-Za-z0-9_+.\-]*"
_PATH = re.compile(rf"{_SEGMENT}(?:/{_SEGMENT})*")
_MAKERS_OF_INPUTS = ("get_inputs", "get_init_inputs")


class TaskSource(Protocol):
    """What a start workspace needs to know of a task."""

    @property
    def id(self) -> str:
        """The task's id, such as `"L1/19"`."""

    def source(self, size: str) -> str:
        """The reference program, in KernelBench's form."""


def check_path(path: str) -> str:
    """Returns `path` if it may name a file of a workspace.

    Raises:
        EditError: It is absolute, leaves the workspace, holds characters other than letters,
            digits and `_ + . - /`, has a suffix that is not accepted, or is the read-only
            reference.
    """
    if path == REFERENCE_FILE:
        raise EditError(f"{REFERENCE_FILE} is read-only: expected another path, got {path!r}")
    if len(path) > _MAX_PATH:
        raise EditError(f"path: expected at most {_MAX_PATH} characters, got {len(path)}")
    if not _PATH.fullmatch(path):
        raise EditError(
            "path: expected a relative path of letters, digits and '_ + . -' inside the workspace, "
            f"got {path!r}"
        )
    if not path.endswith(SUFFIXES):
        raise EditError(f"path: expected a name ending in {' '.join(SUFFIXES)}, got {path!r}")
    return path


@dataclasses.dataclass(frozen=True, eq=False)
class Workspace:
    """One snapshot of the files that an agent edits.

    Two snapshots are equal when their files are, whatever their history.

    Attributes:
        files: Path (POSIX, relative) to text, sorted by path; what is judged. Read-only.
        reference: The task's source, shown beside the files as `reference.py`; never judged.
        parent: The snapshot that this one was made from, or None for the first.

    Raises:
        EditError: A path is not accepted (see `check_path`), a text is not UTF-8 or holds a NUL
            byte, or a limit is exceeded: 64 files, 1 MiB a file, 4 MiB in all.
    """

    files: Mapping[str, str]
    reference: str = ""
    parent: Workspace | None = dataclasses.field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Copy the files, and refuse what no compiler could be given."""
        kept = self.parent.files if self.parent is not None else {}
        if len(self.files) > MAX_FILES:
            raise EditError(f"workspace: expected at most {MAX_FILES} files, got {len(self.files)}")
        total = 0
        for path, text in self.files.items():
            # A text taken over from the parent was checked there: snapshots cost what they change.
            total += len(text.encode()) if kept.get(path) is text else _check_file(path, text)
        if total > MAX_TOTAL_BYTES:
            raise EditError(
                f"workspace: expected at most {MAX_TOTAL_BYTES} bytes in all, got {total}"
            )
        files = {path: self.files[path] for path in sorted(self.files)}
        object.__setattr__(self, "files", MappingProxyType(files))

    @classmethod
    def initial(cls, task: TaskSource, size: str) -> Workspace:
        """The start of an episode: `model_new.py` is the reference with `Model` named `ModelNew`.

        Args:
            task: The task to start on.
            size: Which shapes: `"small"`, `"medium"` or `"full"`.

        Raises:
            TaskFormatError: The task's source is not Python.
        """
        source = task.source(size)
        try:
            text = _as_candidate(source)
        except (SyntaxError, ValueError, tokenize.TokenError) as error:
            raise TaskFormatError(f"{task.id}: expected Python source, got: {error}") from error
        return cls({MAIN_FILE: text}, reference=source)

    def with_files(self, changes: Mapping[str, str | None]) -> Workspace:
        """A child snapshot in which some files are written, or deleted where the text is None.

        Raises:
            EditError: As for `Workspace`, or a file to delete does not exist.
        """
        files = dict(self.files)
        for path, text in changes.items():
            if text is not None:
                files[path] = text
            elif files.pop(path, None) is None:
                raise EditError(f"cannot delete {path}: no such file in the workspace")
        return Workspace(files, self.reference, self)

    @functools.cached_property
    def hash(self) -> str:
        """SHA-256 over paths and texts, hexadecimal; the reference and history do not count."""
        digest = hashlib.sha256()
        for path, text in self.files.items():
            for part in (path.encode(), text.encode()):
                digest.update(len(part).to_bytes(8, "little"))
                digest.update(part)
        return digest.hexdigest()

    @property
    def history(self) -> tuple[Workspace, ...]:
        """All snapshots from the first to this one."""
        snapshots: list[Workspace] = []
        snapshot: Workspace | None = self
        while snapshot is not None:
            snapshots.append(snapshot)
            snapshot = snapshot.parent
        return tuple(reversed(snapshots))

    def diff(self, other: Workspace) -> str:
        """The unified diff that turns this snapshot's files into `other`'s; `""` if none."""
        parts: list[str] = []
        for path in sorted({*self.files, *other.files}):
            before, after = self.files.get(path), other.files.get(path)
            if before != after:
                lines = difflib.unified_diff(
                    _diff_lines(before),
                    _diff_lines(after),
                    "/dev/null" if before is None else f"a/{path}",
                    "/dev/null" if after is None else f"b/{path}",
                )
                parts.extend(lines)
        return "".join(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Workspace) and self.files == other.files

    def __hash__(self) -> int:
        return int(self.hash[:16], 16)

    def __reduce__(self) -> tuple[Any, ...]:
        # A read-only view cannot be pickled or copied deeply; its contents can.
        return (Workspace, (dict(self.files), self.reference, self.parent))


def _check_file(path: str, text: str) -> int:
    check_path(path)
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise EditError(
            f"{path}: expected Unicode text, got a lone surrogate at character {error.start}"
        ) from error
    if size > MAX_FILE_BYTES:
        raise EditError(f"{path}: expected at most {MAX_FILE_BYTES} bytes, got {size}")
    if "\0" in text:
        raise EditError(f"{path}: expected text, got a NUL byte at character {text.index(chr(0))}")
    return size


def _diff_lines(text: str | None) -> list[str]:
    lines = (text or "").split("\n")
    last = lines.pop()
    return [f"{line}\n" for line in lines] + (
        [f"{last}\n\\ No newline at end of file\n"] if last else []
    )


def _as_candidate(source: str) -> str:
    """The reference as a candidate: renamed, and without the functions that make its inputs."""
    lines = io.StringIO(source.replace("\r\n", "\n")).readlines()
    names: list[tuple[int, int]] = []
    previous = ""
    for token in tokenize.generate_tokens(iter(lines).__next__):
        if token.type == tokenize.NAME and token.string == "Model" and previous != ".":
            names.append(token.end)
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            previous = token.string
    for row, column in reversed(names):
        line = lines[row - 1]
        lines[row - 1] = f"{line[:column]}New{line[column:]}"
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name in _MAKERS_OF_INPUTS:
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            last = node.end_lineno or node.lineno
            lines[first - 1 : last] = [""] * (last - first + 1)
    return "".join(lines).rstrip() + "\n"
