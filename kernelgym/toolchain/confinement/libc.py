"""The few functions of the C library that Python does not offer."""

from __future__ import annotations

import ctypes
import os

__all__ = ["check", "libc", "prctl"]


def libc() -> ctypes.CDLL:
    """The C library of this process."""
    return ctypes.CDLL(None, use_errno=True)


def prctl(option: int, argument: int) -> int:
    """Sets a property of the process; returns 0, or -1 with errno set."""
    unsigned = ctypes.c_ulong
    return int(libc().prctl(option, unsigned(argument), unsigned(0), unsigned(0), unsigned(0)))


def check(result: int, what: str) -> None:
    """Turns a failed call into an error.

    Raises:
        OSError: `result` is negative; errno says why.
    """
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
