"""System calls refused by a seccomp filter.

A list of what is refused, because Python, torch and compilers use too many calls to list what is
allowed. The filter is assembled here: libseccomp's binding cannot be installed everywhere.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
from typing import NamedTuple

from .libc import libc

__all__ = [
    "COUNTER_RULES",
    "HARDENED_RULES",
    "NETWORK_RULES",
    "PROCESS_RULES",
    "THREAD_RULES",
    "Rule",
    "filter_calls",
]

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_X32_CALLS = 0x40000000
_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE_THREAD = 0x00010000

# Numbers on x86-64 and on aarch64; from 424 on they are the same everywhere. None: no such call.
_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "add_key": (248, 217),
    "bpf": (321, 280),
    "clone": (56, 220),
    "clone3": (435, 435),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "fork": (57, None),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "kcmp": (312, 272),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "kill": (62, 129),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "request_key": (249, 218),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "setns": (308, 268),
    "socket": (41, 198),
    "tgkill": (234, 131),
    "tkill": (200, 130),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vfork": (58, None),
}


class Rule(NamedTuple):
    """One system call that is refused.

    Attributes:
        call: Its name.
        error: The errno it fails with.
        unless: `""` (always refused), `"equal"` or `"bits"`: let through when the first argument
            equals `value`, or has one of its bits. `"self"`: when it is the own process id.
        value: See `unless`.
    """

    call: str
    error: int = errno.EPERM
    unless: str = ""
    value: int = 0


NETWORK_RULES: tuple[Rule, ...] = (Rule("socket", errno.EAFNOSUPPORT, "equal", socket.AF_UNIX),)
"""Only sockets of the machine itself."""

PROCESS_RULES: tuple[Rule, ...] = (
    Rule("fork"),
    Rule("vfork"),
    Rule("clone", errno.EPERM, "bits", _CLONE_THREAD),
    # Its flags lie in memory, out of a filter's sight; the C library falls back to clone.
    Rule("clone3", errno.ENOSYS),
    Rule("kill", errno.EPERM, "self"),
    Rule("tgkill", errno.EPERM, "self"),
    Rule("tkill"),
    Rule("rt_sigqueueinfo", errno.EPERM, "self"),
    Rule("rt_tgsigqueueinfo", errno.EPERM, "self"),
    Rule("pidfd_send_signal"),
)
"""No new processes, and no signals to others."""

COUNTER_RULES: tuple[Rule, ...] = (Rule("perf_event_open"), Rule("bpf"))
"""What the privilege to count on a GPU would bring along."""

THREAD_RULES: tuple[Rule, ...] = (Rule("clone"), Rule("clone3"))
"""No new threads either."""

HARDENED_RULES: tuple[Rule, ...] = (
    Rule("add_key"),
    Rule("bpf"),
    Rule("delete_module"),
    Rule("finit_module"),
    Rule("fsconfig"),
    Rule("fsmount"),
    Rule("fsopen"),
    Rule("init_module"),
    Rule("io_uring_enter"),
    Rule("io_uring_register"),
    Rule("io_uring_setup"),
    Rule("kcmp"),
    Rule("kexec_load"),
    Rule("keyctl"),
    Rule("mount"),
    Rule("mount_setattr"),
    Rule("move_mount"),
    Rule("open_by_handle_at"),
    Rule("open_tree"),
    Rule("perf_event_open"),
    Rule("pidfd_getfd"),
    Rule("pivot_root"),
    Rule("process_madvise"),
    Rule("process_vm_readv"),
    Rule("process_vm_writev"),
    Rule("ptrace"),
    Rule("request_key"),
    Rule("setns"),
    Rule("umount2"),
    Rule("unshare"),
    Rule("userfaultfd"),
)
"""Nothing that reaches into other processes or into rarely used parts of the kernel."""


def filter_calls(rules: tuple[Rule, ...]) -> bool:
    """Refuses the rules' system calls from here on, in the calling thread and all it starts.

    Returns:
        Whether the kernel took the filter.

    Raises:
        ValueError: The calls of this kind of machine are not known.
    """
    machine = os.uname().machine
    if machine not in _AUDIT:
        raise ValueError(f"expected a machine of {', '.join(_AUDIT)}, got {machine!r}")
    program = _assemble(rules, machine)
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    buffer = ctypes.create_string_buffer(header, len(header))
    answer = libc().prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_MODE_FILTER), buffer)
    return int(answer) == 0


def _assemble(rules: tuple[Rule, ...], machine: str) -> bytes:
    """The program: each rule is a run of instructions that leaves the call's number loaded."""
    refuse = _REFUSE | errno.EPERM
    program = [
        # Calls by another architecture's numbers (32-bit, x32) would slip past the rules.
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_EQUAL, _AUDIT[machine], yes=1),
        _instruction(_RETURN, refuse),
        _instruction(_LOAD, _NUMBER),
        _instruction(_AT_LEAST, _X32_CALLS, no=1),
        _instruction(_RETURN, refuse),
    ]
    for rule in rules:
        number = _NUMBERS[rule.call][list(_AUDIT).index(machine)]
        if number is None:
            continue
        verdict = _instruction(_RETURN, _REFUSE | rule.error)
        if rule.unless:
            value = os.getpid() if rule.unless == "self" else rule.value
            test = _ANY_BIT if rule.unless == "bits" else _EQUAL
            program += [
                _instruction(_EQUAL, number, no=4),
                _instruction(_LOAD, _FIRST_ARGUMENT),
                _instruction(test, value, yes=1),
                verdict,
                _instruction(_LOAD, _NUMBER),
            ]
        else:
            program += [_instruction(_EQUAL, number, no=1), verdict]
    program.append(_instruction(_RETURN, _ALLOW))
    return b"".join(program)


def _instruction(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)
