"""The registry of KernelBench's tasks: every file of `level1`, `level2` and `level3`."""

from __future__ import annotations

import difflib
import functools
import json
import pathlib
import re

from kernelgym.errors import UnknownTaskError
from kernelgym.tasks.task import Task

__all__ = ["get", "ids"]

_FOLDER = pathlib.Path(__file__).parent
_ID = re.compile(r"(?:L|level[ _-]?)(\d+)\s*[/\-_: ]\s*0*(\d+)", re.IGNORECASE)
_FILE = re.compile(r"(\d{3})_\w+\.py")


def get(task_id: str) -> Task:
    """The task of that id.

    Args:
        task_id: `"L1/19"`; also taken: `"L1/019"`, `"L1-19"`, `"level1/19"`.

    Raises:
        UnknownTaskError: There is none; the message names what comes closest.
    """
    files = _files()
    match = _ID.fullmatch(task_id.strip()) if isinstance(task_id, str) else None
    key = (int(match[1]), int(match[2])) if match else None
    if key is None or key not in files:
        raise UnknownTaskError(
            f"expected a task id such as 'L1/19', got {task_id!r}{_hint(task_id)}"
        )
    path = files[key]
    level, number = key
    return Task(
        id=f"L{level}/{number}",
        level=level,
        number=number,
        name=_names()[f"L{level}/{number}"],
        path=str(path),
        text=path.read_text(encoding="utf-8"),
    )


def ids(level: int | None = None) -> tuple[str, ...]:
    """The ids of all tasks, or of one level's, in order.

    Raises:
        UnknownTaskError: No such level.
    """
    keys = sorted(_files())
    levels = sorted({key[0] for key in keys})
    if level is not None and level not in levels:
        raise UnknownTaskError(f"level: expected one of {levels}, got {level!r}")
    return tuple(f"L{key[0]}/{key[1]}" for key in keys if level in (None, key[0]))


@functools.cache
def _files() -> dict[tuple[int, int], pathlib.Path]:
    return {
        (level, int(match[1])): path
        for level in (1, 2, 3)
        for path in (_FOLDER / f"level{level}").iterdir()
        if (match := _FILE.fullmatch(path.name))
    }


@functools.cache
def _names() -> dict[str, str]:
    text = (_FOLDER / "names.json").read_text(encoding="utf-8")
    names: dict[str, str] = json.loads(text)
    return names


def _hint(task_id: object) -> str:
    """Ids whose id or name resembles what was asked for, and the range of its level."""
    known = ids()
    names = _names()
    text = str(task_id).lower()
    by_name = {names[known_id].lower(): known_id for known_id in known}
    close = [by_name[name] for name in difflib.get_close_matches(text, by_name, n=3)]
    close = close or difflib.get_close_matches(str(task_id).upper(), known, n=3)
    hint = f"; did you mean {' or '.join(f'{c} ({names[c]})' for c in close)}?" if close else ""
    counts = ", ".join(f"L{level}/1 to L{level}/{n}" for level, n in _last_numbers().items())
    return f"{hint} (there are {counts})"


def _last_numbers() -> dict[int, int]:
    last: dict[int, int] = {}
    for level, number in sorted(_files()):
        last[level] = number
    return last
