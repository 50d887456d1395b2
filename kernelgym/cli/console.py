"""Where the command line writes: results to stdout, problems and progress to stderr."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.text import Text

from kernelgym.feedback import printable

__all__ = ["Progress", "errors", "output", "plain", "problem"]

_PIPE_WIDTH = 240
_PATIENCE_SECONDS = 2.0


class Progress:
    """Says on stderr what takes long: a spinner on a terminal, elsewhere one line after 2 s.

    Args:
        text: What is going on.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._status = errors().status(_shown(text))
        self._terminal = sys.stderr.isatty()
        self._timer = threading.Timer(_PATIENCE_SECONDS, self._say)
        self._timer.daemon = True

    def update(self, text: str) -> None:
        """Says something else from now on."""
        self._text = text
        if self._terminal:
            self._status.update(_shown(text))

    def __enter__(self) -> Progress:
        if self._terminal:
            self._status.start()
        else:
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        self._status.stop()

    def _say(self) -> None:
        problem(self._text)


def output() -> Console:
    """A console on stdout; without a terminal it writes plain text, and hardly wraps it."""
    return _console(sys.stdout)


def errors() -> Console:
    """The same on stderr."""
    return _console(sys.stderr)


def plain(text: str) -> None:
    """Writes text to stdout as it is: for machines."""
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")


def _shown(text: str) -> Text:
    # As a Text, because a string's brackets would be read as markup.
    return Text(printable(text))


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Lets the command end as any other of its writes would, rather than with a 1."""
        raise BrokenPipeError


def _console(stream: TextIO) -> Console:
    terminal = stream.isatty()
    width = None if terminal else _PIPE_WIDTH
    return _Console(file=stream, highlight=False, soft_wrap=not terminal, width=width)


def problem(text: str) -> None:
    """Writes one line to stderr."""
    sys.stderr.write(f"kernelgym: {printable(text)}\n")
