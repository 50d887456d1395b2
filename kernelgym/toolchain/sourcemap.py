"""From a line of a source text back to the line of the workspace where it was written.

CUDA code lives in string constants of a Python file. A compiler speaks of lines of the string's
value; whoever reads its message wants the line of the file.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kernelgym.toolchain.build import SourceFile
from kernelgym.toolchain.python_source import parse

__all__ = ["Place", "SourceMap"]

_STRING = re.compile(r"(?P<prefix>[A-Za-z]*)(?P<quote>'''|\"\"\"|'|\")")
_BREAK = re.compile(
    r"\\(?:\n|N\{[^}]*\}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)|\n"
)
_RAW_BREAK = re.compile(r"\n")


class Place(NamedTuple):
    """A place in the workspace: path, 1-based line, 1-based column (0 when unknown)."""

    file: str
    line: int
    column: int


class _Run(NamedTuple):
    """Characters of a value that lie side by side in the file: where they start in both."""

    value_column: int
    line: int
    column: int


class SourceMap:
    """Finds where texts given to a compiler were written.

    A text that is the value of a string constant (adjacent constants count as one), or a whole file
    of the workspace, is mapped exactly. Any other text (an f-string, a constant that was formatted,
    stripped or joined) is mapped by its lines that occur exactly once in the workspace, and lines
    between such by the nearest one above.

    Args:
        files: The workspace.
    """

    def __init__(self, files: Iterable[SourceFile]) -> None:
        self._lines = {file.path: file.text.split("\n") for file in files}
        self._whole = {"\n".join(lines): path for path, lines in self._lines.items()}
        self._constants: dict[str, tuple[str, ast.Constant]] = {}
        for path in self._lines:
            if path.endswith(".py"):
                self._collect(path)
        self._exact: dict[str, tuple[str, list[list[_Run]]]] = {}
        self._anchors: dict[str, dict[int, tuple[str, int]]] = {}
        self._unique = self._unique_lines()

    def has_file(self, path: str) -> bool:
        """Whether the workspace has a file of that path."""
        return path in self._lines

    def line_text(self, file: str, line: int) -> str:
        """One line of a file of the workspace, or `""` when there is none."""
        lines = self._lines.get(file, [])
        return lines[line - 1] if 1 <= line <= len(lines) else ""

    def locate(self, text: str, line: int, column: int = 0) -> Place | None:
        """Where a line of a text was written.

        Args:
            text: All of the text that the compiler was given.
            line: 1-based line in it.
            column: 1-based column in characters, or 0.

        Returns:
            The place, or `None` when it is not to be found.
        """
        if text in self._whole:
            return Place(self._whole[text], line, column)
        if text in self._constants:
            return self._locate_exactly(text, line, column)
        return self._locate_roughly(text, line, column)

    def _collect(self, path: str) -> None:
        tree = parse("\n".join(self._lines[path]))
        if tree is None:
            return  # Without a tree there are still the lines.
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
                self._constants.setdefault(node.value, (path, node))

    def _locate_exactly(self, text: str, line: int, column: int) -> Place | None:
        if text not in self._exact:
            path, node = self._constants[text]
            self._exact[text] = (path, _runs(self._lines[path], node))
        path, rows = self._exact[text]
        if not rows:
            return None
        # A message about the end of the text may name the line after the last.
        if line > len(rows):
            return Place(path, rows[-1][-1].line, 0)
        runs = rows[line - 1]
        if column == 0:
            return Place(path, runs[0].line, 0)
        run = next((run for run in reversed(runs) if run.value_column < column), runs[0])
        return Place(path, run.line, run.column + column - run.value_column)

    def _locate_roughly(self, text: str, line: int, column: int) -> Place | None:
        lines = text.split("\n")
        if not 1 <= line <= len(lines):
            return None
        if text not in self._anchors:
            self._anchors[text] = {
                number: self._unique[_normal(content)]
                for number, content in enumerate(lines, 1)
                if _normal(content) in self._unique
            }
        anchors = self._anchors[text]
        if line in anchors:
            path, found = anchors[line]
            written, given = self.line_text(path, found), lines[line - 1]
            shift = _indent(written) - _indent(given)
            return Place(path, found, column + shift if column else 0)
        above = max((number for number in anchors if number < line), default=None)
        if above is None:
            return None
        path, found = anchors[above]
        below = min((number for number in anchors if number > line), default=None)
        place = found + line - above
        if below is not None and anchors[below][0] == path:
            # A hole of another length than in the file (a formatted value of several lines).
            place = min(place, max(found, anchors[below][1] - 1))
        return Place(path, min(place, len(self._lines[path])), 0)

    def _unique_lines(self) -> dict[str, tuple[str, int]]:
        found: dict[str, tuple[str, int]] = {}
        twice: set[str] = set()
        for path, lines in self._lines.items():
            for number, line in enumerate(lines, 1):
                normal = _normal(line)
                if normal in found:
                    twice.add(normal)
                found[normal] = (path, number)
        return {line: place for line, place in found.items() if line and line not in twice}


def _normal(line: str) -> str:
    """A line as it looks whether or not it went through formatting, quotes or an indent."""
    line = line.replace("{{", "{").replace("}}", "}").replace("%%", "%").strip()
    return _STRING.sub("", line, count=1) if line[:3] in ('"""', "'''") else line


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _runs(lines: Sequence[str], node: ast.Constant) -> list[list[_Run]]:
    """For each line of a constant's value, where its characters stand in the file."""
    first, last = node.lineno, node.end_lineno or node.lineno
    source = "\n".join([*lines[first - 1 : last], ""])
    start = len(lines[first - 1].encode()[: node.col_offset].decode())
    end = len(lines[last - 1].encode()[: node.end_col_offset].decode())
    rows: list[list[_Run]] = [[]]
    column = 0
    for token in _string_tokens(source):
        line, offset = token.start[0] + first - 1, token.start[1]
        if (line, offset) < (first, start) or (line, offset) >= (last, end):
            continue
        column = _walk(token.string, line, offset, rows, column)
    if not rows[-1]:
        rows.pop()
    return rows


def _string_tokens(source: str) -> list[tokenize.TokenInfo]:
    """String tokens of an excerpt, which need not be a whole statement."""
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.STRING:
                found.append(token)
    except (tokenize.TokenError, SyntaxError):
        pass  # The excerpt ends inside a bracket; its strings came before.
    return found


def _walk(token: str, line: int, offset: int, rows: list[list[_Run]], column: int) -> int:
    """Adds one literal's characters to `rows`; returns the column reached in the value's line."""
    opening = _STRING.match(token)
    if opening is None:
        return column
    raw = "r" in opening["prefix"].lower()
    at, end = opening.end(), len(token) - len(opening["quote"])
    line_start = -offset  # Index in the token of the physical line's first character.
    for match in (_RAW_BREAK if raw else _BREAK).finditer(token, at, end):
        if match.start() > at or not rows[-1]:
            rows[-1].append(_Run(column, line, at - line_start))
        column += match.start() - at
        at = match.end()
        content = match.group()
        value = "\n" if content == "\n" else _unescape(content)
        if content.endswith("\n"):
            line, line_start = line + 1, match.end()
        if value == "\n":
            rows.append([])
            column = 0
        elif value:
            rows[-1].append(_Run(column, line, match.start() - line_start))
            column += len(value)
    if end > at:
        rows[-1].append(_Run(column, line, at - line_start))
        column += end - at
    return column


def _unescape(escape: str) -> str:
    if escape == "\\\n":
        return ""
    try:
        return str(ast.literal_eval(f'"{escape}"' if escape != "\\'" else '"\'"'))
    except (SyntaxError, ValueError):
        return escape
