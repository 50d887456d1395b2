"""Resource limits, and giving up root and its privileges."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
from collections.abc import Iterable

from .libc import libc, prctl
from .policy import NOBODY, Policy

__all__ = [
    "become_nobody",
    "drop_capabilities",
    "drop_user",
    "forbid_new_privileges",
    "limit_resources",
]

_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 4, 24, 38
_CAPABILITY_VERSION_3 = 0x20080522


def limit_resources(policy: Policy) -> None:
    """Sets the policy's resource limits; none is raised above what is in force already."""
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: policy.cpu_seconds,
        resource.RLIMIT_AS: policy.memory_bytes,
        resource.RLIMIT_FSIZE: policy.file_bytes,
        resource.RLIMIT_NPROC: policy.max_processes,
    }
    for kind, value in wanted.items():
        if value is None:
            continue
        hard = resource.getrlimit(kind)[1]
        limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (limit, limit))


def forbid_new_privileges() -> None:
    """From here on, executing a set-uid program gives nothing; other steps need this one."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_user(policy: Policy) -> bool:
    """Changes root into `NOBODY`, and gives it the writable folders.

    Returns:
        Whether it did: it does not where `NOBODY` could not reach a path of the policy (an
        interpreter below `/root`), for then nothing would run.
    """
    if not _reachable_by_nobody(policy.readable):
        return False
    _give(policy.writable, NOBODY)
    if _reachable_by_nobody((os.getcwd(), *policy.writable)) and become_nobody():
        return True
    # Root without its privileges could not enter folders that are somebody else's.
    _give(policy.writable, 0)
    return False


def _give(paths: Iterable[str], owner: int) -> None:
    for path in filter(os.path.isdir, paths):
        for folder, _, names in os.walk(path):
            for name in (".", *names):
                # Of other commands in the same folder, temporary files come and go.
                with contextlib.suppress(FileNotFoundError, PermissionError):
                    os.chown(os.path.join(folder, name), owner, owner, follow_symlinks=False)


def _reachable_by_nobody(paths: Iterable[str]) -> bool:
    present = [path for path in paths if os.path.exists(path)]
    try:
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
    except OSError:
        return False
    reachable = all(os.access(path, os.R_OK, effective_ids=True) for path in present)
    os.seteuid(0)
    os.setegid(0)
    return reachable


def become_nobody() -> bool:
    """Changes root into `NOBODY`, without groups; returns whether it may."""
    try:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    except OSError:
        return False
    # A change of user makes /proc/self root's, and with it the map of a user namespace.
    prctl(_PR_SET_DUMPABLE, 1)
    return True


def drop_capabilities() -> bool:
    """Gives up every privilege that root or a user namespace gave; returns whether none is left."""
    for capability in range(64):
        if prctl(_PR_CAPBSET_DROP, capability) != 0:
            break  # Past the last one, or there was no privilege to begin with.
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    none = (ctypes.c_uint32 * 6)()
    return int(libc().capset(header, none)) == 0
