"""Where the command line writes: results to stdout, problems and progress to stderr."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

from kernelgym.feedback import printable

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["errors", "output", "plain", "problem"]

_PIPE_WIDTH = 240


def output() -> Console:
    """A console on stdout; without a terminal it writes plain text, and hardly wraps it."""
    return _console(sys.stdout)


def errors() -> Console:
    """The same on stderr."""
    return _console(sys.stderr)


def plain(text: str) -> None:
    """Writes text to stdout as it is: for machines."""
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")


def _console(stream: TextIO) -> Console:
    from rich.console import Console

    terminal = stream.isatty()
    width = None if terminal else _PIPE_WIDTH
    return Console(file=stream, highlight=False, soft_wrap=not terminal, width=width)


def problem(text: str) -> None:
    """Writes one line to stderr."""
    sys.stderr.write(f"kernelgym: {printable(text)}\n")
