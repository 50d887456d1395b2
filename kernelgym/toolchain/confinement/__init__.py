"""Taking rights away from the current process: the pieces of the sandbox.

`confine` is called in a forked child that has one thread, before it runs foreign code or executes a
compiler. It takes away all that `Policy.level` asks for and the kernel allows, and returns the
names of what is in force, so that a verdict can state it; what the kernel refuses is missing from
the names, never silently assumed.

======== =========================================================================================
level    protections
======== =========================================================================================
basic    `rlimits`, `no_new_privileges`
standard basic, `no_network` (an empty network namespace, else a filter on `socket`), `pidns`,
         `ipcns`, `landlock` (where the kernel has none `mountns`: a root of bind mounts),
         `unprivileged` (root becomes `NOBODY`), `no_capabilities`
hardened standard, `seccomp`: no tracing of others, keys, mounts, new namespaces, performance
         events, BPF, io_uring, handles of other processes
======== =========================================================================================

`no_processes` and `no_threads` are added when the policy refuses those, at any level. A policy that
leaves the right to count on a GPU has `only_performance_counters` in place of `no_capabilities`.

The package imports the standard library alone and nothing of kernelgym, so that the launcher of
`kernelgym.toolchain.sandbox` starts in milliseconds.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from .landlock import landlock_version, restrict_files
from .namespaces import change_root, enter_namespaces
from .policy import LEVELS, NOBODY, Policy
from .privileges import (
    drop_capabilities,
    drop_user,
    forbid_new_privileges,
    limit_resources,
)
from .seccomp import (
    COUNTER_RULES,
    HARDENED_RULES,
    NETWORK_RULES,
    PROCESS_RULES,
    THREAD_RULES,
    Rule,
    filter_calls,
)

__all__ = [
    "LAUNCHER",
    "LEVELS",
    "NOBODY",
    "Policy",
    "confine",
    "enter_namespaces",
    "landlock_version",
]

LAUNCHER = os.path.join(os.path.dirname(__file__), "launcher.py")
"""The program that confines a command; see there."""


def confine(policy: Policy, namespaces: Sequence[str] | None = None) -> tuple[str, ...]:
    """Confines the calling process, for good, and its children with it.

    Args:
        policy: What it may still do.
        namespaces: What `enter_namespaces` returned, when the caller entered them before it
            forked (a process namespace holds children only); `None` enters them here.

    Returns:
        The names of the protections in force, sorted.

    Raises:
        ValueError: The level is not one of `LEVELS`, or the machine is not one whose system calls
            are known (x86-64 and aarch64) while the policy needs a filter on them.
        OSError: A limit that needs no privilege could not be set.
    """
    if policy.level not in LEVELS:
        raise ValueError(f"level: expected one of {', '.join(LEVELS)}, got {policy.level!r}")
    active = {"no_new_privileges", "rlimits"}
    entered: Sequence[str] = ()
    if policy.level != "basic":
        entered = enter_namespaces(policy, pid=False) if namespaces is None else namespaces
        active.update(name for name in entered if name in ("ipcns", "pidns"))
        # Mounts need privileges that the steps below give up.
        if landlock_version() == 0 and "mountns" in entered and change_root(policy):
            active.add("mountns")
        if os.geteuid() != 0 or drop_user(policy):
            active.add("unprivileged")
    # After the change of user, whose processes are counted, and while /proc can be read.
    limit_resources(policy)
    forbid_new_privileges()
    counting = False
    if policy.level != "basic":
        counting = policy.performance_counters and drop_capabilities(keep_counters=True)
        if counting:
            active.add("only_performance_counters")
        elif drop_capabilities():
            active.add("no_capabilities")
        if restrict_files(policy):
            active.add("landlock")

    rules: tuple[Rule, ...] = () if policy.new_processes else PROCESS_RULES
    if not (policy.new_processes or policy.new_threads):
        rules = THREAD_RULES + rules
    if counting:
        rules += COUNTER_RULES
    if policy.level == "hardened":
        rules += HARDENED_RULES
    if policy.level == "hardened" or (policy.level == "standard" and "netns" not in entered):
        rules += NETWORK_RULES
    filtered = bool(rules) and filter_calls(rules)
    if counting and not filtered and drop_capabilities():
        active.discard("only_performance_counters")
        active.add("no_capabilities")
    if "netns" in entered or (filtered and policy.level != "basic"):
        active.add("no_network")
    if filtered and not policy.new_processes:
        active.add("no_processes")
        if not policy.new_threads:
            active.add("no_threads")
    if filtered and policy.level == "hardened":
        active.add("seccomp")
    return tuple(sorted(active))
