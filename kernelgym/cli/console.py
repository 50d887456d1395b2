"""Where the command line writes: results to stdout, problems and progress to stderr."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from kernelgym.feedback import printable

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["errors", "output", "plain", "problem"]


def output() -> Console:
    """A console on stdout; without a terminal it writes plain text, and never wraps it."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    return Console(highlight=False, soft_wrap=not terminal)


def errors() -> Console:
    """The same on stderr."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())


def plain(text: str) -> None:
    """Writes text to stdout as it is: for machines."""
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")


def problem(text: str) -> None:
    """Writes one line to stderr."""
    sys.stderr.write(f"kernelgym: {printable(text)}\n")
