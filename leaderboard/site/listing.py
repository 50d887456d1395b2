"""Sources as lists of lines, with what changed against the reference marked on each line."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping

from markupsafe import Markup, escape

from kernelgym.feedback import printable
from kernelgym.workspace import MAIN_FILE

__all__ = ["Listing", "listings"]

# Beyond this the lines are shown without a comparison: it takes quadratic time.
_MOST_COMPARED = 4000


@dataclasses.dataclass(frozen=True)
class Listing:
    """A file to be shown.

    Attributes:
        path: Its path.
        language: `"python"` or `"cuda"`.
        body: Its lines as elements of class `same`, `added` or `removed`.
        compared: Whether it was compared with the reference.
        added: Number of lines that the reference lacks.
        removed: Number of lines that only the reference has.
    """

    path: str
    language: str
    body: Markup
    compared: bool
    added: int = 0
    removed: int = 0


def listings(files: Mapping[str, str], start: str) -> tuple[Listing, ...]:
    """The files of a solution, `model_new.py` first.

    Args:
        files: Path to text.
        start: What `model_new.py` is compared with, or `""`.
    """
    return tuple(
        _listing(path, files[path], start if path == MAIN_FILE else "")
        for path in sorted(files, key=lambda path: (path != MAIN_FILE, path))
    )


def _listing(path: str, text: str, start: str) -> Listing:
    language = "python" if path.endswith(".py") else "cuda"
    after = text.splitlines()
    before = start.splitlines()
    if not start or len(after) + len(before) > _MOST_COMPARED:
        return Listing(path, language, _lines("same", after), False)
    parts: list[Markup] = []
    added = removed = 0
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, first, last, new_first, new_last in matcher.get_opcodes():
        if kind == "equal":
            parts.append(_lines("same", after[new_first:new_last]))
            continue
        parts.append(_lines("removed", before[first:last]))
        parts.append(_lines("added", after[new_first:new_last]))
        added += new_last - new_first
        removed += last - first
    return Listing(path, language, Markup("").join(parts), True, added, removed)


def _lines(kind: str, lines: list[str]) -> Markup:
    # One escape for all of them: line by line it would be most of a site's build.
    if not lines:
        return Markup("")
    body = str(escape(printable("\n".join(lines))))
    opening = f'<span class="{kind}">'
    return Markup(opening + body.replace("\n", f"\n</span>{opening}") + "\n</span>")
