"""`Fix`: one small change to one file, and how likely it is to be the right one."""

from __future__ import annotations

import dataclasses

__all__ = ["Fix", "insert_line", "line_span", "splice"]


@dataclasses.dataclass(frozen=True)
class Fix:
    """A change to a file.

    Attributes:
        file: Its path in the workspace.
        text: The whole new text.
        says: What was changed, in a few words.
        weight: How likely it helps: 0 (a guess) to 1 (what the compiler itself suggests).
        line: 1-based line of the change.
    """

    file: str
    text: str = dataclasses.field(repr=False)
    says: str
    weight: float
    line: int


def splice(file: str, text: str, start: int, end: int, new: str, says: str, weight: float) -> Fix:
    """A fix that puts `new` in the place of the characters from `start` up to `end`."""
    line = text.count("\n", 0, start) + 1
    return Fix(file, text[:start] + new + text[end:], says, weight, line)


def insert_line(file: str, text: str, line: int, new: str, says: str, weight: float) -> Fix:
    """A fix that puts a line before the 1-based `line`, indented as that one is."""
    lines = text.splitlines(keepends=True)
    at = min(max(line - 1, 0), len(lines))
    model = lines[at] if at < len(lines) else ""
    indent = model[: len(model) - len(model.lstrip())].rstrip("\n")
    lines.insert(at, f"{indent}{new}\n")
    return Fix(file, "".join(lines), says, weight, at + 1)


def line_span(text: str, line: int) -> tuple[int, int]:
    """Offsets of a 1-based line, without its line end; an empty span past the last one."""
    start = 0
    for _ in range(line - 1):
        found = text.find("\n", start)
        if found < 0:
            return len(text), len(text)
        start = found + 1
    end = text.find("\n", start)
    return start, len(text) if end < 0 else end
