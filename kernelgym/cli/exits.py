"""Exit codes of the `kernelgym` command, and what turns an error into one."""

from __future__ import annotations

import enum
import errno
import functools
import os
import select
import sys
from collections.abc import Callable
from typing import NoReturn, TypeVar

import typer

from kernelgym.cli.console import problem
from kernelgym.errors import EnvironmentFault, UsageError
from kernelgym.judge.verdict import Outcome

__all__ = ["Exit", "exit_of", "finish", "guarded"]

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_Command = TypeVar("_Command", bound=Callable[..., None])


class Exit(enum.IntEnum):
    """Every exit code. `evaluate` ends with 0 for `correct` and for nothing else."""

    CORRECT = 0  # also: the command did what it was asked for
    NO = 1  # it ran, and the answer is no: `run` left a task unsolved, `doctor` found a fault
    USAGE = 2
    REJECTED = 3
    COMPILE_ERROR = 4
    RUNTIME_ERROR = 5
    TIMEOUT = 6
    INCORRECT = 7
    UNSUPPORTED = 8
    FAULT = 9  # the harness or the machine failed: not the candidate's fault, no verdict
    AGENT = 10  # `run`: the agent raised, or returned something that is no text
    INTERRUPTED = 130
    CLOSED = 141  # whoever read the output stopped; what the shell says of a SIGPIPE


def exit_of(outcome: Outcome) -> Exit:
    """The exit code of a verdict."""
    return Exit[outcome.name]


def finish(code: Exit) -> NoReturn:
    """Ends the command with that code."""
    raise typer.Exit(int(code))


def guarded(command: _Command) -> _Command:
    """Makes an error that kernelgym raises on purpose a message on stderr and an exit code."""

    @functools.wraps(command)
    def run(*args: object, **kwargs: object) -> None:
        try:
            try:
                command(*args, **kwargs)
            finally:
                sys.stdout.flush()  # a full disk or a closed pipe shows here, not after the end
        except UsageError as error:
            problem(str(error))
            finish(Exit.USAGE)
        except EnvironmentFault as fault:
            problem(f"{type(fault).__name__}: {fault}")
            problem("This is not the candidate's fault, and it got no verdict. `kernelgym doctor`")
            problem("says what is missing on this machine and how to get it.")
            finish(Exit.FAULT)
        except OSError as error:
            if isinstance(error, BrokenPipeError) and _reader_is_gone():
                _give_up_stdout()
                finish(Exit.CLOSED)
            # What a caller names is checked where it is used; this is the cache, or the output.
            if error.filename is not None:
                problem(f"cannot write {error.filename}: {error.strerror}")
            elif error.errno in _FULL:
                _give_up_stdout()
                problem(f"cannot write the output: {error.strerror}")
            else:
                problem(f"{type(error).__name__}: {error}")
            finish(Exit.FAULT)
        except KeyboardInterrupt:
            problem("interrupted")
            finish(Exit.INTERRUPTED)

    return run  # type: ignore[return-value]


def _reader_is_gone() -> bool:
    """Whether it is stdout's pipe that broke, rather than one to a process of the judge's."""
    poll = select.poll()
    poll.register(sys.stdout, 0)  # errors are always reported
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _give_up_stdout() -> None:
    """Lets what is left in stdout's buffer go nowhere, or Python would complain at its end."""
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
