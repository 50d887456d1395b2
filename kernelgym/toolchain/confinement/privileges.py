"""Resource limits, and giving up root and its privileges."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import stat

from .libc import libc, prctl
from .policy import NOBODY, Policy

__all__ = [
    "become_nobody",
    "drop_capabilities",
    "drop_user",
    "forbid_new_privileges",
    "limit_resources",
]

_PR_SET_DUMPABLE, _PR_SET_KEEPCAPS, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 4, 8, 24, 38
_EVERYBODYS = frozenset({"/", "/dev", "/etc", "/home", "/root", "/tmp", "/usr", "/var"})
_CAPABILITY_VERSION_3 = 0x20080522
_CAP_PERFMON = 38


def limit_resources(policy: Policy) -> None:
    """Sets the policy's resource limits; none is raised above what is in force already."""
    processes = policy.max_processes
    if processes is not None:
        # The kernel counts all of the user's, wherever they run.
        processes += _running(os.geteuid())
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: policy.cpu_seconds,
        resource.RLIMIT_AS: policy.memory_bytes,
        resource.RLIMIT_FSIZE: policy.file_bytes,
        resource.RLIMIT_NPROC: processes,
    }
    for kind, value in wanted.items():
        if value is None:
            continue
        hard = resource.getrlimit(kind)[1]
        limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (limit, limit))


def _running(user: int) -> int:
    """How many processes and threads a user has now."""
    total = 0
    for entry in os.scandir("/proc"):
        # Those that end meanwhile, and those of others, cannot be looked into.
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == user:
                total += len(os.listdir(f"/proc/{entry.name}/task"))
    return total


def forbid_new_privileges() -> None:
    """From here on, executing a set-uid program gives nothing; other steps need this one."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_user(policy: Policy) -> bool:
    """Changes root into `NOBODY`, and gives it the writable folders.

    Returns:
        Whether it did: it does not where `NOBODY` could not reach a path of the policy (an
        interpreter below `/root`), for then nothing would run.

    Raises:
        ValueError: A writable folder is others' too, such as `/tmp`: to give it away would break
            the machine.
    """
    for path in policy.writable:
        if os.path.isdir(path) and not path.startswith("/proc/"):
            _refuse_shared(path)
    # What is below /proc is the kernel's, and changes owner with the process.
    folders = [p for p in policy.writable if os.path.isdir(p) and not p.startswith("/proc/")]
    here = os.getcwd()
    inside = any(os.path.commonpath([here, folder]) == folder for folder in folders)
    read = [*filter(os.path.exists, policy.readable), *([] if inside else [here])]
    # Decided before anything is given away: what stays root could not reach it afterwards.
    parents = [os.path.dirname(folder) for folder in folders]
    try:
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
    except OSError:
        return False
    reachable = all(os.access(path, os.R_OK, effective_ids=True) for path in read) and all(
        os.access(parent, os.X_OK, effective_ids=True) for parent in parents
    )
    os.seteuid(0)
    os.setegid(0)
    if not reachable:
        return False
    for path in folders:
        for folder, _, names in os.walk(path):
            for name in (".", *names):
                # Of other commands in the same folder, temporary files come and go.
                with contextlib.suppress(FileNotFoundError):
                    os.chown(os.path.join(folder, name), NOBODY, NOBODY, follow_symlinks=False)
    return become_nobody(keep=policy.performance_counters)


def _refuse_shared(path: str) -> None:
    shared = os.stat(path).st_mode & (stat.S_ISVTX | stat.S_IWOTH)
    if shared or os.path.realpath(path) in _EVERYBODYS:
        raise ValueError(f"expected a writable folder of the command's own, got {path}")


def become_nobody(*, keep: bool = False) -> bool:
    """Changes root into `NOBODY`, without groups; returns whether it may.

    Args:
        keep: Whether its privileges stay within reach, for `drop_capabilities` to choose from.
    """
    prctl(_PR_SET_KEEPCAPS, int(keep))
    try:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    except OSError:
        return False
    # A change of user makes /proc/self root's, and with it the map of a user namespace.
    prctl(_PR_SET_DUMPABLE, 1)
    return True


def drop_capabilities(*, keep_counters: bool = False) -> bool:
    """Gives up every privilege that root or a user namespace gave.

    Args:
        keep_counters: Whether to keep the one that a GPU's driver asks for; see
            `Policy.performance_counters`.

    Returns:
        Whether no other is left; `False` and nothing kept where there was none to keep.
    """
    for capability in range(64):
        if prctl(_PR_CAPBSET_DROP, capability) != 0:
            break  # Past the last one, or there was no privilege to begin with.
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    # Effective, permitted and inheritable, for capabilities below 32; then the same from 32 on.
    sets = (ctypes.c_uint32 * 6)()
    if keep_counters:
        sets[3] = sets[4] = 1 << (_CAP_PERFMON - 32)
    return int(libc().capset(header, sets)) == 0
