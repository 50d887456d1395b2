"""The program between the sandbox and a command: confines it, waits for it, ends all it started.

`python -I -S launcher.py ORDER` with ORDER as JSON: `policy` (the fields of `Policy`, in order),
`command`, `wall_seconds`, and `report`: a descriptor that is sent lines of JSON, one with the
protections in force before the command runs and one with its end. The launcher stays outside of the
confinement, as the parent (and where there is no process namespace the reaper) of everything that
the command starts, so that nothing is left when it exits.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time

# Run as a file, without site-packages and without importing kernelgym: see the package's docstring.
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from confinement import (  # type: ignore[import-not-found]
    Policy,
    confine,
    enter_namespaces,
)
from confinement.libc import prctl  # type: ignore[import-not-found]

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_CHILD_ENDED = (signal.SIGCHLD,)
_PASSES = 200


def main() -> None:
    """Runs the command that the first argument describes and reports its end."""
    order = json.loads(sys.argv[1])
    command, report, policy = order["command"], order["report"], Policy(*order["policy"])
    deadline = time.monotonic() + order["wall_seconds"]
    os.set_inheritable(report, False)
    # The caller's end of life is ours, and ours is the command's: nothing outlives the caller.
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    namespaces = () if policy.level == "basic" else enter_namespaces(policy)
    signal.pthread_sigmask(signal.SIG_BLOCK, _CHILD_ENDED)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _CHILD_ENDED)
        _execute(command, policy, namespaces, report)
    outcome = _wait(child, deadline)
    outcome["nothing_left"] = _end_descendants()
    _say(report, outcome)


def _execute(command: list[str], policy: Policy, namespaces: tuple[str, ...], report: int) -> None:
    """Confines this process and becomes the command; never returns."""
    try:
        # Python ignores these, and a program inherits what is ignored.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        active = confine(policy, namespaces)
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # The change of user has reset it.
        _say(report, {"protections": active})
        os.execvpe(command[0], command, os.environ)
    except BaseException as error:
        _say(report, {"fault": f"{type(error).__name__}: {error}"})
        os._exit(127)


def _wait(child: int, deadline: float) -> dict[str, object]:
    """Waits for the command, and kills it at the deadline."""
    timed_out = False
    while True:
        ended, status, usage = os.wait4(child, 0 if timed_out else os.WNOHANG)
        if ended:
            break
        # Other children end too: those that the command left to us.
        if signal.sigtimedwait(_CHILD_ENDED, max(0.0, deadline - time.monotonic())) is None:
            timed_out = True
            os.kill(child, signal.SIGKILL)
    return {
        "returncode": os.waitstatus_to_exitcode(status),
        "timed_out": timed_out,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_memory": usage.ru_maxrss * 1024,
    }


def _end_descendants() -> bool:
    """Ends what the command left behind; returns whether nothing is left.

    In a process namespace the kernel has done so already. Elsewhere all are stopped before any is
    killed, so that none starts others meanwhile.
    """
    stopped: set[int] = set()
    for _ in range(_PASSES):
        fresh = set(_descendants()) - stopped
        for process in fresh:
            _send(process, signal.SIGSTOP)
        stopped |= fresh
        if not fresh:
            break
    for _ in range(_PASSES):
        for process in _descendants():
            _send(process, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return True
        signal.sigtimedwait(_CHILD_ENDED, 0.01)
    return False


def _send(process: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


def _descendants() -> list[int]:
    """Process ids of children, their children, and so on."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            # The name, in parentheses, may hold anything.
            parent = int(file.read().rpartition(b")")[2].split()[1])
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    pending = [os.getpid()]
    while pending:
        below = children.get(pending.pop(), [])
        found += below
        pending += below
    return found


def _say(report: int, line: dict[str, object]) -> None:
    os.write(report, json.dumps(line).encode() + b"\n")


if __name__ == "__main__":
    main()
