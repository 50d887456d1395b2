"""Edits: reads what one action text asks for, and applies it to a workspace.

Builders and texts say the same: `parse(render(*edits)).edits == edits`. The forms of text are
described in `docs/environment.md`.

Example:
    >>> text = render(WriteFile("kernels/relu.cuh", ""), Submit())
    >>> parse(text).edits
    (WriteFile(path='kernels/relu.cuh', text=''), Submit())
"""

from __future__ import annotations

import dataclasses
import re

from kernelgym.edit_types import (
    Edit,
    Replace,
    Submit,
    UnifiedDiff,
    WriteFile,
    as_lines,
    path_in,
    path_in_comment,
    search_marker,
)
from kernelgym.errors import EditError
from kernelgym.workspace import MAIN_FILE, Workspace

__all__ = [
    "MAX_ACTION_LENGTH",
    "Edit",
    "EditScript",
    "Replace",
    "Submit",
    "UnifiedDiff",
    "WriteFile",
    "parse",
    "render",
]

MAX_ACTION_LENGTH = 16 * 2**20
"""Most characters of an action text."""

_MAX_EDITS = 256
_MAX_BLOCKS = 1024

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`\n]*)")
_HUNK = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")
_PATH_TOKEN = re.compile(r"\S*\.[A-Za-z]\w{0,7}|\S*/\S*")
_PYTHON = ("python", "py", "python3")
_SOURCE_LANGUAGES = (*_PYTHON, "", "cuda", "cu", "cuh", "cpp", "c++", "c", "cc", "h", "hpp")
_OPEN, _CLOSE = "<think>", "</think>"
_NO_EDIT = (
    "no edit found: expected a fenced block with its path (```python model_new.py), a "
    "SEARCH/REPLACE block, a unified diff, or a line 'submit'"
)


@dataclasses.dataclass(frozen=True)
class EditScript:
    """The edits of one text, in order."""

    edits: tuple[Edit, ...]

    @property
    def submits(self) -> bool:
        """Whether the text asks to stop."""
        return any(isinstance(edit, Submit) for edit in self.edits)

    def apply(self, workspace: Workspace) -> Workspace:
        """Applies all edits or, if one fails, none.

        Returns:
            One new snapshot whose parent is `workspace`, or `workspace` itself when nothing is
            asked for but to stop.

        Raises:
            EditError: An edit does not apply; the message says which and why.
        """
        after = workspace
        for number, edit in enumerate(self.edits, 1):
            try:
                after = edit.apply(after)
            except EditError as error:
                which = f"edit {number} of {len(self.edits)}: " if len(self.edits) > 1 else ""
                raise EditError(f"{which}{error}") from error
        return after if after is workspace else dataclasses.replace(after, parent=workspace)


def render(*edits: Edit) -> str:
    """The edits as one action text."""
    text = "".join(edit.to_text() for edit in edits)
    # A text is read from behind a first, unopened "</think>": shield one that belongs to a file.
    return f"{_OPEN}{_CLOSE}\n{text}" if _CLOSE in text else text


def parse(text: str) -> EditScript:
    """Reads the edits out of one action text.

    Takes time linear in the text, whatever it holds.

    Raises:
        EditError: There is no edit in it, or one cannot be read.
    """
    if len(text) > MAX_ACTION_LENGTH:
        raise EditError(f"action: expected at most {MAX_ACTION_LENGTH} characters, got {len(text)}")
    return EditScript(_Parser(text).parse())


@dataclasses.dataclass(frozen=True)
class _Block:
    """A fenced block that names no file."""

    language: str
    text: str
    line: int


class _Parser:
    """One pass over the lines; every look ahead is either consumed or ends in an error."""

    def __init__(self, text: str) -> None:
        close = text.find(_CLOSE)
        if close != -1 and text.find(_OPEN, 0, close) == -1:
            text = text[close + len(_CLOSE) :]  # the thought was opened by the prompt
        self._lines = as_lines(text).split("\n")
        self._at = 0
        self._edits: list[Edit] = []
        self._blocks: list[_Block] = []
        self._path = MAIN_FILE  # of the last SEARCH/REPLACE block: the next one may leave it out
        self._shell: str | None = None  # the fence around SEARCH/REPLACE blocks, while inside it

    def parse(self) -> tuple[Edit, ...]:
        while self._at < len(self._lines):
            if not self._lines[self._at]:
                self._at += 1
                continue
            if len(self._edits) > _MAX_EDITS or len(self._blocks) > _MAX_BLOCKS:
                raise EditError(
                    f"action: expected at most {_MAX_EDITS} edits and {_MAX_BLOCKS} other blocks, "
                    "got more"
                )
            if _OPEN in self._lines[self._at]:
                self._skip_thought()
            line = self._lines[self._at]
            fence = _FENCE.fullmatch(line)
            marker = search_marker(self._lines, self._at) if line.startswith("<<<<<<<") else None
            if fence and self._shell and _closes(line, self._shell):
                self._shell = None
                self._at += 1
            elif fence:
                self._read_fence(fence.group(1), fence.group(2).strip()[:1000])
            elif marker is not None:
                self._read_replace(self._path_above())
            elif self._starts_diff():
                self._read_diff()
            else:
                if _says_submit(line):
                    self._edits.append(Submit())
                self._at += 1
        self._adopt_block()
        if not self._edits:
            raise EditError(_NO_EDIT)
        return tuple(self._edits)

    def _skip_thought(self) -> None:
        """Goes to the line on which thoughts end, and leaves there what stands around them."""
        before = self._lines[self._at].partition(_OPEN)[0]
        position = 0
        line = self._lines[self._at]
        first = self._at
        while (start := line.find(_OPEN, position)) != -1:
            end = line.find(_CLOSE, start)
            while end == -1:
                self._at += 1
                if self._at == len(self._lines):
                    raise EditError(f"line {first + 1}: {_OPEN} is never closed; {_NO_EDIT}")
                line = self._lines[self._at]
                end = line.find(_CLOSE)
            position = end + len(_CLOSE)
        after = line[position:]
        self._lines[self._at] = after if after.strip() else before

    def _read_fence(self, fence: str, info: str) -> None:
        opened = self._at
        language, path = _language_and_path(info)
        above = self._path_above()
        marker = search_marker(self._lines, opened + 1)
        if marker is not None:
            self._at, inner = marker
            self._shell = fence
            self._read_replace(path or inner or above)
            return
        end = opened + 1
        while end < len(self._lines) and not _closes(self._lines[end], fence):
            end += 1
        if end == len(self._lines):
            raise EditError(
                f"line {opened + 1}: the fenced block {fence[:8]}{info[:80]} is never closed"
            )
        body = self._lines[opened + 1 : end]
        self._at = end + 1
        text = "\n".join([*body, ""])
        if path is None and language in _SOURCE_LANGUAGES:
            path = above or path_in_comment(self._lines[opened + 1])
        if language in ("diff", "patch") or (path is None and text.startswith(("--- ", "diff "))):
            self._edits.append(UnifiedDiff(text))
        elif path is not None:
            self._edits.append(WriteFile(path, text))
        elif len(body) < 4 and _says_submit("".join(body)):
            self._edits.append(Submit())
        else:
            self._blocks.append(_Block(language, text, opened + 1))

    def _read_replace(self, path: str | None) -> None:
        opened = self._at
        size = len(self._lines[opened].split(" ", 1)[0])
        middle = self._find_line("=" * size, opened, "======= line")
        end = self._find_line(">" * size + " REPLACE", middle, "REPLACE line")
        self._path = path or self._path
        search, replace = self._lines[opened + 1 : middle], self._lines[middle + 1 : end]
        self._edits.append(Replace(self._path, "\n".join([*search, ""]), "\n".join([*replace, ""])))
        self._at = end + 1

    def _find_line(self, wanted: str, start: int, name: str) -> int:
        for index in range(start + 1, len(self._lines)):
            if self._lines[index].rstrip(" \t") == wanted:
                return index
        raise EditError(
            f"line {self._at + 1}: the SEARCH block has no {name}: expected {wanted[:80]!r}"
        )

    def _starts_diff(self) -> bool:
        rest = self._lines[self._at : self._at + 2]
        return len(rest) == 2 and rest[0].startswith("--- ") and rest[1].startswith("+++ ")

    def _read_diff(self) -> None:
        """Takes file headers and hunks, by their counts, up to the first line that is neither."""
        first = self._at
        while self._starts_diff():
            self._at += 2
            while self._at < len(self._lines) and (hunk := _HUNK.match(self._lines[self._at])):
                old, new = (int(count or 1) for count in hunk.groups())
                self._at += 1
                while self._at < len(self._lines) and (old > 0 or new > 0):
                    kind = self._lines[self._at][:1]
                    if kind not in ("", " ", "-", "+", "\\"):
                        break
                    old -= kind in ("", " ", "-")
                    new -= kind in ("", " ", "+")
                    self._at += 1
                if self._at < len(self._lines) and self._lines[self._at].startswith("\\"):
                    self._at += 1
        self._edits.append(UnifiedDiff("\n".join([*self._lines[first : self._at], ""])))

    def _path_above(self) -> str | None:
        """The path that the line above names; one blank line may lie between."""
        for index in range(self._at - 1, max(-1, self._at - 3), -1):
            if self._lines[index].strip():
                return path_in(self._lines[index])
        return None

    def _adopt_block(self) -> None:
        """Takes the one Python block without a path for `model_new.py`, if nothing else is that."""
        changes = [edit for edit in self._edits if not isinstance(edit, Submit)]
        if any(isinstance(edit, UnifiedDiff) or edit.path == MAIN_FILE for edit in changes):
            return
        models = [block for block in self._blocks if "class ModelNew" in block.text]
        python = [block for block in self._blocks if block.language in _PYTHON]
        candidates = models if changes or len(python) != 1 else python
        if len(candidates) == 1:
            self._edits.insert(0, WriteFile(MAIN_FILE, candidates[0].text))
        elif self._blocks and not changes:
            lines = ", ".join(str(block.line) for block in self._blocks[:10])
            raise EditError(
                f"{len(self._blocks)} fenced blocks name no file (at lines {lines}): expected the "
                "path behind the fence, as in ```python model_new.py"
            )


def _closes(line: str, fence: str) -> bool:
    bare = line.strip(" \t")
    return (
        len(bare) >= len(fence)
        and bare == fence[0] * len(bare)
        and len(line) - len(line.lstrip(" ")) < 4
    )


def _language_and_path(info: str) -> tuple[str, str | None]:
    tokens = [token for token in re.split(r"[\s:=\"'{},]+", info) if token]
    paths = [token for token in tokens if _PATH_TOKEN.fullmatch(token)]
    language = tokens[0].lower() if tokens and tokens[0] not in paths else ""
    return language, paths[-1] if paths else None


def _says_submit(line: str) -> bool:
    return len(line) < 40 and line.strip(" \t`*.!").lower() == "submit"
