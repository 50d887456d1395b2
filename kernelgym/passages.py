"""Finds passages of whole lines in a text, and says what comes closest when there is none."""

from __future__ import annotations

import collections
import difflib
import heapq
import re

__all__ = ["closest_passage", "find_lines"]

_MOST_FOUND = 20  # more are not told apart: the search has to be made unique anyway
_SHOWN_LINES = 8
_LINE_WIDTH = 160
_FUZZY_LINES = 2000  # looked through for words
_RANKED_LINES = 8  # given to difflib, whose time is quadratic
_SIMILAR = 0.5
_WORD = re.compile(r"\w+")


def find_lines(text: str, passage: str, floor: int = 0) -> list[int]:
    """Offsets at which `passage` occurs as whole lines; at most the first 20.

    Args:
        text: Whole lines, each ending in a line feed.
        passage: The same, not empty.
        floor: Where to begin: the start of a line.
    """
    found: list[int] = []
    start = text.find(passage, floor)
    while start != -1 and len(found) < _MOST_FOUND:
        if start == 0 or text[start - 1] == "\n":
            found.append(start)
            start = text.find(passage, start + 1)
        else:
            # Skip to the next line, so that a passage inside long lines costs no second look.
            line_end = text.find("\n", start)
            start = text.find(passage, line_end + 1) if line_end != -1 else -1
    return found


def closest_passage(text: str, passage: str) -> str:
    """One or two sentences on the passage of `text` that comes closest; time is bounded."""
    lines = text.split("\n")[:-1]
    wanted = passage.split("\n")[:-1]
    if not lines:
        return "The file is empty."
    start = _best_window([line.strip() for line in lines], [line.strip() for line in wanted])
    if start is None:
        start = _most_similar_line(lines, wanted)
    if start is None:
        return "Nothing in the file comes close."
    passage_lines = lines[start : start + len(wanted)]
    shown = "\n".join(_clip(line) for line in passage_lines[:_SHOWN_LINES])
    more = "\n…" if len(passage_lines) > _SHOWN_LINES else ""
    return f"Closest is line {start + 1}:\n{shown}{more}\n{_first_difference(passage_lines, wanted, start)}"


def _best_window(lines: list[str], wanted: list[str]) -> int | None:
    """Start of the window that shares most non-blank lines, whatever their indentation."""
    needed = collections.Counter(line for line in wanted if line)
    held: collections.Counter[str] = collections.Counter()
    shared, best, best_start = 0, 0, None
    for index, line in enumerate(lines):
        if line in needed:
            held[line] += 1
            shared += held[line] <= needed[line]
        leaving = index - len(wanted)
        if leaving >= 0 and lines[leaving] in needed:
            shared -= held[lines[leaving]] <= needed[lines[leaving]]
            held[lines[leaving]] -= 1
        if shared > best:
            best, best_start = shared, max(0, leaving + 1)
    if best_start is None:
        return None
    # The window ends at the last shared line; align it by the first line that both hold.
    for index in range(best_start, min(best_start + len(wanted), len(lines))):
        if lines[index] in needed:
            return max(0, index - wanted.index(lines[index]))
    return best_start


def _most_similar_line(lines: list[str], wanted: list[str]) -> int | None:
    """Start of the window whose line comes closest to the longest one wanted."""
    target = max(wanted, key=lambda line: len(line.strip()))[:_LINE_WIDTH]
    words = set(_WORD.findall(target))
    # Words first, for they are cheap; difflib ranks the few lines that share most of them.
    shared = [
        (len(words.intersection(_WORD.findall(line[:_LINE_WIDTH]))), -index)
        for index, line in enumerate(lines[:_FUZZY_LINES])
    ]
    likely = [-index for count, index in heapq.nlargest(_RANKED_LINES, shared) if count]
    matcher = difflib.SequenceMatcher(b=target, autojunk=False)
    best, best_index = 0.0, None
    for index in likely:
        matcher.set_seq1(lines[index][:_LINE_WIDTH])
        if matcher.ratio() > max(best, _SIMILAR):
            best, best_index = matcher.ratio(), index
    if best_index is None:
        return None
    offset = next(at for at, line in enumerate(wanted) if line.startswith(target))
    return max(0, best_index - offset)


def _first_difference(lines: list[str], wanted: list[str], start: int) -> str:
    for offset, expected in enumerate(wanted):
        if offset >= len(lines):
            return f"The file ends before line {start + offset + 1}."
        got = lines[offset]
        if got != expected:
            kind = " (only white space differs)" if got.split() == expected.split() else ""
            return (
                f"Line {start + offset + 1} is {_clip(got)!r}, asked for was "
                f"{_clip(expected)!r}{kind}."
            )
    return "The lines are the same, but elsewhere than named or more than once."


def _clip(line: str) -> str:
    return line if len(line) <= _LINE_WIDTH else line[: _LINE_WIDTH - 1] + "…"
