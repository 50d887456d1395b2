"""Places that a caller names to be written: one that cannot be is the caller's error."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from kernelgym.errors import UsageError

__all__ = ["writing"]


@contextlib.contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Around what writes a file or a folder that the caller named.

    Args:
        path: What the caller named; for the message.

    Raises:
        UsageError: The system refused; says why.
    """
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot write {os.fspath(path)}: {error.strerror or error}") from error
