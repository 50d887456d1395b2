"""Runs somebody's program under limits of time and tokens, and ends all of it at the limit."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from kernelgym.budget import Usage
from kernelgym.errors import AgentError

__all__ = ["Supervised", "end_group", "supervise"]

_GRACE = 3.0
_POLL = 0.05
_LINE = 2**20


@dataclasses.dataclass(frozen=True)
class Supervised:
    """How a program ended.

    Attributes:
        code: Its exit status; negative for a signal.
        stopped: Which limit ended it: `"seconds"`, `"tokens"`, or `""`.
        usage: What its output says that it used.
        seconds: How long it ran.
    """

    code: int
    stopped: str
    usage: Usage
    seconds: float


def supervise(
    command: Sequence[str],
    folder: Path,
    output: Path,
    *,
    prompt: str,
    seconds: float,
    tokens: int | None,
    pattern: str,
) -> Supervised:
    """Runs a program to its end or to a limit.

    Args:
        command: The program and its arguments.
        folder: Where it runs.
        output: Gets all that it prints.
        prompt: Written to its standard input.
        seconds: Most wall-clock seconds.
        tokens: Most tokens that it may say it used; None for no limit.
        pattern: Finds counts of tokens in its output, each adding to those before: the groups
            `prompt` and `completion`, of digits; either may be missing.

    Raises:
        AgentError: It cannot be started.
    """
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise AgentError(f"expected a command that starts, got {command[0]!r}: {error}") from error
    began = time.monotonic()
    counter = _Counter(re.compile(pattern.encode()), output)
    threads = [
        threading.Thread(target=counter.read, args=(process,), daemon=True),
        threading.Thread(target=_write, args=(process, prompt), daemon=True),
    ]
    for thread in threads:
        thread.start()
    stopped = ""
    try:
        while process.poll() is None and not stopped:
            if time.monotonic() - began >= seconds:
                stopped = "seconds"
            elif tokens is not None and counter.usage.tokens >= tokens:
                stopped = "tokens"
            else:
                time.sleep(_POLL)
    finally:
        end_group(process)
        for thread in threads:
            thread.join(_GRACE)
    code = process.wait()
    return Supervised(code, stopped, counter.usage, time.monotonic() - began)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends a process, its group, and those of its descendants that left the group; waits for it."""
    others: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        others = psutil.Process(process.pid).children(recursive=True)
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        for one in others:
            with contextlib.suppress(psutil.Error):
                one.send_signal(number)
        if number is signal.SIGTERM:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE)
            psutil.wait_procs(others, timeout=_GRACE)
    process.wait()


class _Counter:
    """Copies a program's output to a file and counts the tokens that it tells of."""

    def __init__(self, pattern: re.Pattern[bytes], output: Path) -> None:
        self._pattern = pattern
        self._output = output
        self.usage = Usage()

    def read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with self._output.open("wb") as file, process.stdout as source:
            while line := source.readline(_LINE):
                file.write(line)
                file.flush()
                for match in self._pattern.finditer(line):
                    found = match.groupdict()
                    counts = (int(found.get(name) or 0) for name in ("prompt", "completion"))
                    self.usage += Usage(0, *counts)


def _write(process: subprocess.Popen[bytes], prompt: str) -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError), process.stdin as sink:
        sink.write(prompt.encode())
