"""File access, TCP and signals restricted by Landlock, which needs no privilege.

The kernel interface is `linux/landlock.h`; three system calls are less than a dependency, and the
launcher starts without site-packages.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys

from .libc import libc
from .policy import Policy

__all__ = ["landlock_version", "restrict_files"]

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_OF_PLAIN_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
# How many rights each version of the interface knows; they are numbered from bit 0.
_KNOWN_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}


def landlock_version() -> int:
    """The version of the kernel's Landlock interface, or 0 where it has none."""
    create_version = 1
    return max(0, int(libc().syscall(_CREATE_RULESET, None, 0, create_version)))


def restrict_files(policy: Policy) -> bool:
    """Leaves the process the policy's paths, no TCP, and signals within the sandbox only.

    Needs `forbid_new_privileges` first.

    Returns:
        Whether the kernel did so.
    """
    version = landlock_version()
    if version == 0:
        return False
    rights = (1 << _KNOWN_RIGHTS[min(version, max(_KNOWN_RIGHTS))]) - 1
    bind_and_connect = 3 if version >= 4 else 0
    abstract_sockets_and_signals = 3 if version >= 6 else 0
    attributes = (ctypes.c_uint64 * 3)(rights, bind_and_connect, abstract_sockets_and_signals)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = int(libc().syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), 0))
    if ruleset < 0:
        return False
    try:
        for path in policy.readable:
            _allow_beneath(ruleset, path, _READ)
        for path in policy.writable:
            _allow_beneath(ruleset, path, rights)
        return int(libc().syscall(_RESTRICT_SELF, ruleset, 0)) == 0
    finally:
        os.close(ruleset)


def _allow_beneath(ruleset: int, path: str, rights: int) -> None:
    """Adds a rule; a path that is missing or refused just stays out of reach."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _OF_PLAIN_FILES
        beneath = rights.to_bytes(8, sys.byteorder) + descriptor.to_bytes(4, sys.byteorder)
        path_beneath = 1
        libc().syscall(_ADD_RULE, ruleset, path_beneath, beneath, 0)
    finally:
        os.close(descriptor)
