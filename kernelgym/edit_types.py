"""The kinds of edit, as records: each can be written as text, and applied to a workspace."""

from __future__ import annotations

import dataclasses
import itertools
import re
from typing import TypeAlias

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchedFile, PatchSet

from kernelgym.errors import EditError
from kernelgym.passages import closest_passage, find_lines
from kernelgym.workspace import (
    MAX_FILES,
    MAX_TOTAL_BYTES,
    REFERENCE_FILE,
    SUFFIXES,
    Workspace,
    check_path,
)

__all__ = [
    "Edit",
    "Replace",
    "Submit",
    "UnifiedDiff",
    "WriteFile",
    "as_lines",
    "fenced",
    "path_in",
    "path_in_comment",
    "search_marker",
]

_LANGUAGES = {".py": "python", ".cu": "cuda", ".cuh": "cuda"}
_MARKER = 7
_MAX_HUNKS = 1000
_SEARCH = re.compile(r"(<{7,}) SEARCH[ \t]*")
_NAME = r"[\w+\-./]{1,200}(?:" + "|".join(re.escape(suffix) for suffix in SUFFIXES) + ")"
# A line that names a file, bare or as models dress it: "### `x.cu`:", "**File: x.cu**".
_NAMING_LINE = re.compile(
    rf"[#>*\-\s`\"]*(?:(?:file|filename|filepath|path)\s*:)?[\s`*\"]*({_NAME})[\s`*\":]*", re.I
)
# Prose that ends by naming one: "Update `x.cu`:".
_NAMING_END = re.compile(rf"`({_NAME})`[*\s]*:?\s*$")
_NAMING_COMMENT = re.compile(rf"\s*(?://|#)\s*(?:file\s*:\s*)?({_NAME})\s*", re.I)
_NAMING_WIDTH = 300


def as_lines(text: str) -> str:
    """The text with line feeds for line ends, and one after the last line; edits work in whole lines."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if not text or text.endswith("\n") else text + "\n"


@dataclasses.dataclass(frozen=True)
class WriteFile:
    """Creates a file, or replaces all of it.

    Attributes:
        path: Path in the workspace.
        text: The whole text, in whole lines (see `as_lines`).

    Raises:
        EditError: The path is not accepted, or the text begins with a SEARCH marker.
    """

    path: str
    text: str

    def __post_init__(self) -> None:
        """Normalise line ends; refuse what would read as another edit."""
        check_path(self.path)
        object.__setattr__(self, "text", as_lines(self.text))
        if search_marker(self.text.split("\n"), 0) is not None:
            raise EditError(f"{self.path}: expected a whole file, got a SEARCH marker")

    def to_text(self) -> str:
        """The edit as a fenced block."""
        return fenced(self.path, self.text)

    def apply(self, workspace: Workspace) -> Workspace:
        """See `EditScript.apply`."""
        return workspace.with_files({self.path: self.text})


@dataclasses.dataclass(frozen=True)
class Replace:
    """Replaces a passage of whole lines that occurs exactly once.

    Attributes:
        path: Path in the workspace.
        search: The passage, exactly as it stands; empty to fill a file that is missing or empty.
        replace: What takes its place.

    Raises:
        EditError: The path is not accepted.
    """

    path: str
    search: str
    replace: str

    def __post_init__(self) -> None:
        """Normalise line ends."""
        check_path(self.path)
        object.__setattr__(self, "search", as_lines(self.search))
        object.__setattr__(self, "replace", as_lines(self.replace))

    def to_text(self) -> str:
        """The edit as a SEARCH/REPLACE block; the markers are longer than any in the texts."""
        both = self.search + self.replace
        size = max(_longer_than(marker, both, _MARKER - 1) for marker in "<=>")
        return (
            f"{self.path}\n{'<' * size} SEARCH\n{self.search}{'=' * size}\n{self.replace}"
            f"{'>' * size} REPLACE\n"
        )

    def apply(self, workspace: Workspace) -> Workspace:
        """See `EditScript.apply`."""
        present = as_lines(workspace.files.get(self.path, ""))
        if not self.search:
            if present:
                raise EditError(f"{self.path}: SEARCH is empty but the file is not")
            return workspace.with_files({self.path: self.replace})
        if self.path not in workspace.files:
            raise EditError(
                f"{self.path}: no such file; the workspace has {', '.join(workspace.files)}"
            )
        found = find_lines(present, self.search)
        if not found:
            raise EditError(
                f"{self.path}: SEARCH not found. {closest_passage(present, self.search)}"
            )
        if len(found) > 1:
            places = ", ".join(str(present.count("\n", 0, start) + 1) for start in found)
            raise EditError(
                f"{self.path}: SEARCH found {len(found)} times (at lines {places}); expected once: "
                "add lines around it"
            )
        start, end = found[0], found[0] + len(self.search)
        return workspace.with_files({self.path: present[:start] + self.replace + present[end:]})


@dataclasses.dataclass(frozen=True)
class UnifiedDiff:
    """A unified diff over one or several files; context lines must match exactly.

    Attributes:
        text: The diff, with its `---` and `+++` lines, in whole lines (see `as_lines`).

    Raises:
        EditError: The text has no `---` line, or is longer than any workspace.
    """

    text: str

    def __post_init__(self) -> None:
        """Normalise line ends; refuse what is no diff."""
        object.__setattr__(self, "text", as_lines(self.text))
        if len(self.text) > 2 * MAX_TOTAL_BYTES:
            raise EditError(
                f"diff: expected at most {2 * MAX_TOTAL_BYTES} characters, got {len(self.text)}"
            )
        if not re.match(r"\s*(?:--- |diff --git |Index: )", self.text[:4096]):
            raise EditError("diff: expected '--- a/PATH' and '+++ b/PATH' before the first hunk")

    def to_text(self) -> str:
        """The edit as a fenced block."""
        fence = "`" * _longer_than("`", self.text, 2)
        return f"{fence}diff\n{self.text}{fence}\n"

    def apply(self, workspace: Workspace) -> Workspace:
        """See `EditScript.apply`."""
        try:
            patch = PatchSet(self.text)
        except (UnidiffParseError, ValueError) as error:  # ValueError: a number of 5000 digits
            raise EditError(f"diff: cannot be read: {str(error).strip()}") from error
        hunks = sum(len(file) for file in patch)
        if not hunks:
            raise EditError("diff: expected at least one hunk ('@@ -LINE,COUNT +LINE,COUNT @@')")
        if hunks > _MAX_HUNKS or len(patch) > MAX_FILES:
            raise EditError(
                f"diff: expected at most {MAX_FILES} files and {_MAX_HUNKS} hunks, "
                f"got {len(patch)} and {hunks}"
            )
        for file in patch:
            workspace = _patch_file(workspace, file)
        return workspace


@dataclasses.dataclass(frozen=True)
class Submit:
    """Ends the episode, after the other edits of the same text."""

    def to_text(self) -> str:
        """The edit as a line of its own."""
        return "submit\n"

    def apply(self, workspace: Workspace) -> Workspace:
        """Returns the workspace as it is."""
        return workspace


Edit: TypeAlias = WriteFile | Replace | UnifiedDiff | Submit


def fenced(path: str, text: str) -> str:
    """A file as a fenced block, with a fence longer than any in it."""
    language = _LANGUAGES.get(path[path.rindex(".") :], "cpp")
    fence = "`" * _longer_than("`", text, 2)
    return f"{fence}{language} {path}\n{as_lines(text)}{fence}\n"


def path_in(line: str) -> str | None:
    """The path that a line of prose names, if naming a file is what the line is for."""
    if len(line) > _NAMING_WIDTH:
        return None
    match = _NAMING_LINE.fullmatch(line) or _NAMING_END.search(line)
    return match.group(1) if match else None


def path_in_comment(line: str) -> str | None:
    """The path that a comment on a block's first line names, if it holds nothing else."""
    match = _NAMING_COMMENT.fullmatch(line) if len(line) <= _NAMING_WIDTH else None
    return match.group(1) if match else None


def search_marker(lines: list[str], start: int) -> tuple[int, str | None] | None:
    """Finds a SEARCH marker that comes first, or second to a line that names a file.

    Args:
        lines: All lines.
        start: Index of the first to look at; blank ones are passed over.

    Returns:
        The marker's index and the path named before it, or None.
    """
    path = None
    for index in range(start, len(lines)):
        line = lines[index]
        if _SEARCH.fullmatch(line):
            return index, path
        if line and not line.isspace():
            if path is not None:
                return None
            path = path_in(line)
            if path is None:
                return None
    return None


def _longer_than(character: str, text: str, least: int) -> int:
    runs = re.findall(f"{re.escape(character)}+", text)
    return max([least, *map(len, runs)]) + 1


def _patch_file(workspace: Workspace, file: PatchedFile) -> Workspace:
    if file.is_rename or file.is_binary_file:
        raise EditError(f"diff: {file.path}: expected changes of text, got a rename or binary file")
    if file.path == REFERENCE_FILE or not file.is_removed_file:
        check_path(file.path)
    if file.is_removed_file:
        return workspace.with_files({file.path: None})
    if file.path not in workspace.files and not file.is_added_file:
        raise EditError(
            f"diff: {file.path}: no such file; the workspace has {', '.join(workspace.files)}"
        )
    if file.path in workspace.files and file.is_added_file:
        raise EditError(f"diff: {file.path}: cannot be added, it exists")
    before = as_lines(workspace.files.get(file.path, ""))
    starts = list(itertools.accumulate((len(line) + 1 for line in before.split("\n")), initial=0))
    after: list[str] = []
    position = 0
    for number, hunk in enumerate(file, 1):
        # The empty type is a context line that lost its only blank.
        old = as_lines("".join(line.value for line in hunk if line.line_type in ("", " ", "-")))
        new = as_lines("".join(line.value for line in hunk if line.line_type in ("", " ", "+")))
        # An insertion without context goes behind the line it names.
        index = hunk.source_start - (1 if old else 0)
        named = starts[index] if 0 <= index < len(starts) else len(before) + 1
        start = _place_hunk(before, old, position, named)
        if start is None:
            raise EditError(
                f"diff: {file.path}: hunk {number} (at line {hunk.source_start}) does not match. "
                f"{closest_passage(before, old)}"
            )
        after += [before[position:start], new]
        position = start + len(old)
    return workspace.with_files({file.path: "".join([*after, before[position:]])})


def _place_hunk(text: str, old: str, floor: int, named: int) -> int | None:
    """Where the hunk's old lines begin: at the line it names, or at the only place they occur."""
    if floor <= named <= len(text) and text.startswith(old, named):
        return named
    found = find_lines(text, old, floor) if old else []
    return found[0] if len(found) == 1 else None
