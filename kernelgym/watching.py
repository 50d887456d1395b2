"""Judging on save: a candidate's files, each time they change."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernelgym.errors import UsageError
from kernelgym.workspace import SUFFIXES
from kernelgym.workspace_folder import Candidate, read_candidate

__all__ = ["saves"]

_DEBOUNCE_MS = 200


def saves(
    paths: Sequence[str | os.PathLike[str]], stop: threading.Event | None = None
) -> Iterator[Candidate | UsageError]:
    """The candidate now, and again after each save that changes it.

    Folders are watched, not files: editors save by writing another file and renaming it.

    Args:
        paths: As for `read_candidate`.
        stop: Ends the iteration when set.

    Yields:
        The candidate, or why it cannot be read at the moment.

    Raises:
        UsageError: There is no folder to watch.
    """
    import watchfiles

    folders = {Path(path) if Path(path).is_dir() else Path(path).parent for path in paths}
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"FILE: expected a file in a folder that exists, got {folder}")
    last = ""
    now = _read(paths)
    yield now
    if isinstance(now, Candidate):
        last = now.workspace.hash
    for _ in watchfiles.watch(
        *folders,
        watch_filter=lambda change, path: path.endswith(SUFFIXES),
        debounce=_DEBOUNCE_MS,
        stop_event=stop,
        raise_interrupt=True,
    ):
        now = _read(paths)
        if isinstance(now, Candidate):
            if now.workspace.hash == last:
                continue
            last = now.workspace.hash
        yield now


def _read(paths: Sequence[str | os.PathLike[str]]) -> Candidate | UsageError:
    try:
        return read_candidate(paths)
    except UsageError as error:
        return error
