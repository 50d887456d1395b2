"""Namespaces of the process's own, and a root folder that holds only what it may see."""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat

from .libc import check, libc
from .policy import Policy
from .privileges import drop_user

__all__ = ["change_root", "enter_namespaces"]

_CLONE_NEWUSER = 0x10000000
_NEW = {"netns": 0x40000000, "ipcns": 0x08000000, "mountns": 0x00020000, "pidns": 0x20000000}
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x1, 0x20, 0x1000, 0x4000, 0x40000
_MNT_DETACH = 2
_LOCKED_FLAGS = os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}


def enter_namespaces(policy: Policy, *, pid: bool = True) -> tuple[str, ...]:
    """Moves the process into namespaces of its own: network, IPC, mounts, and processes.

    Without privileges, a user namespace is entered first, in which the process keeps its user id.
    A process namespace takes effect for the next child, which becomes its first process: when that
    one dies, the kernel kills all others in it.

    Args:
        policy: Whose paths must stay within reach.
        pid: Whether to ask for a process namespace.

    Returns:
        The names of those entered: of `"netns"`, `"ipcns"`, `"mountns"`, `"pidns"`. Empty where the
        kernel or a container forbids it.
    """
    if not _unshare(_NEW["netns"]) and not (
        _enter_user_namespace(policy) and _unshare(_NEW["netns"])
    ):
        return ()
    wanted = ("ipcns", "mountns", "pidns") if pid else ("ipcns", "mountns")
    return ("netns", *(name for name in wanted if _unshare(_NEW[name])))


def _enter_user_namespace(policy: Policy) -> bool:
    # Root without the privilege (in a container) leaves root first: the new namespace can only map
    # the user that made it.
    if os.geteuid() == 0 and not drop_user(policy):
        return False
    uid, gid = os.geteuid(), os.getegid()
    if not _unshare(_CLONE_NEWUSER):
        return False
    maps = {"setgroups": "deny", "uid_map": f"{uid} {uid} 1", "gid_map": f"{gid} {gid} 1"}
    try:
        for name, text in maps.items():
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    except OSError:
        return False
    return True


def _unshare(flags: int) -> bool:
    return int(libc().unshare(flags)) == 0


def change_root(policy: Policy) -> bool:
    """Makes a root of bind mounts of the policy's paths; needs an own mount namespace.

    Returns:
        Whether it took effect. When a step fails, the process keeps the root that it had.
    """
    machine = os.uname().machine
    if machine not in _PIVOT_ROOT or _mount(None, "/", flags=_MS_REC | _MS_PRIVATE) != 0:
        return False
    here, root = os.getcwd(), "/tmp"
    writable = {os.path.realpath(path) for path in policy.writable}
    sources: dict[str, int] = {}
    try:
        # Opened before the new root is mounted over /tmp, which may hold some of them.
        for path in sorted(writable.union(map(os.path.realpath, policy.readable))):
            with contextlib.suppress(FileNotFoundError):
                sources[path] = os.open(path, os.O_PATH | os.O_CLOEXEC)
        links = _links(policy)
        if _mount("tmpfs", root, kind="tmpfs") != 0:
            return False
        try:
            for path, descriptor in sources.items():
                _bind(descriptor, root + path, path in writable)
            for path, target in links.items():
                if not os.path.lexists(root + path):
                    os.makedirs(os.path.dirname(root + path), exist_ok=True)
                    os.symlink(target, root + path)
            check(_mount(None, root, flags=_MS_REMOUNT | _MS_RDONLY), "make the root read-only")
            os.chdir(root)
            check(libc().syscall(_PIVOT_ROOT[machine], b".", b"."), "pivot_root")
        except OSError:
            os.chdir("/")
            libc().umount2(os.fsencode(root), _MNT_DETACH)
            os.chdir(here)
            return False
    finally:
        for descriptor in sources.values():
            os.close(descriptor)
    # The old root now lies over the new one at the current folder.
    check(libc().umount2(b".", _MNT_DETACH), "umount")
    os.chdir(here if os.path.isdir(here) else "/")
    return True


def _links(policy: Policy) -> dict[str, str]:
    """Symbolic links among the paths asked for (`/lib` of a merged `/usr`), to be made again."""
    paths = map(os.path.normpath, (*policy.readable, *policy.writable))
    return {path: os.path.realpath(path) for path in paths if os.path.realpath(path) != path}


def _bind(descriptor: int, place: str, writable: bool) -> None:
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.makedirs(place, exist_ok=True)
    elif not os.path.exists(place):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "w", encoding="ascii"):
            pass
    check(_mount(f"/proc/self/fd/{descriptor}", place, flags=_MS_BIND | _MS_REC), f"bind {place}")
    if not writable:
        # Flags that the mount came with are locked in a user namespace and must be named again.
        flags = _MS_BIND | _MS_REMOUNT | _MS_RDONLY | (os.statvfs(place).f_flag & _LOCKED_FLAGS)
        check(_mount(None, place, flags=flags), f"make {place} read-only")


def _mount(source: str | None, target: str, *, kind: str | None = None, flags: int = 0) -> int:
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    return int(libc().mount(*encoded, ctypes.c_ulong(flags), None))
