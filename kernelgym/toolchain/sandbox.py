"""Running one command confined: a compiler, on a source that somebody else wrote.

The command runs in its own session below a launcher (`kernelgym.toolchain.confinement.launcher`)
that confines it, waits for it, and ends everything it started. The caller's process neither forks
nor changes, so threads may use this side by side.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO, Any

from kernelgym.errors import SandboxFault
from kernelgym.toolchain.confinement import LAUNCHER, Policy

__all__ = ["SYSTEM_PATHS", "Finished", "protections", "run_confined"]

SYSTEM_PATHS = (
    "/usr",
    "/bin",
    "/lib",
    "/lib64",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/dev/null",
    "/dev/urandom",
)
"""What any program needs to start; holds nothing private."""

_GRACE_SECONDS = 5.0
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ")


@dataclasses.dataclass(frozen=True)
class Finished:
    """How a confined command ended.

    Attributes:
        returncode: Its exit status; minus the signal's number when a signal ended it.
        stdout: The first `output_bytes` of what it wrote, decoded with replacement characters.
        stderr: Likewise.
        timed_out: Whether it was killed at the wall-clock limit.
        truncated: Whether it wrote more than was kept.
        seconds: Wall-clock seconds, launcher included.
        cpu_seconds: Processor seconds of the command and the processes that it waited for.
        peak_memory: Largest resident set among those, in bytes.
        protections: Names of what confined it, sorted; see `kernelgym.toolchain.confinement`, plus
            `"environment"` (scrubbed) and `"process_group"` (own session, killed whole).
    """

    returncode: int
    stdout: str
    stderr: str
    timed_out: bool
    truncated: bool
    seconds: float
    cpu_seconds: float
    peak_memory: int
    protections: tuple[str, ...]


def run_confined(
    command: Sequence[str],
    *,
    cwd: str | os.PathLike[str],
    readable: Sequence[str] = (),
    writable: Sequence[str] = (),
    wall_seconds: float = 60.0,
    cpu_seconds: int | None = None,
    memory_bytes: int | None = None,
    file_bytes: int | None = None,
    output_bytes: int = 4 * 2**20,
    max_processes: int | None = None,
    env: Mapping[str, str] | None = None,
    protection: str = "standard",
) -> Finished:
    """Runs a command that may read and write only what it is given.

    Args:
        command: The program, found on the `PATH`, and its arguments.
        cwd: The folder to run in; must be among what may be read or written.
        readable: Files and folders that may be read, besides `SYSTEM_PATHS`.
        writable: Files and folders that may be written; the first folder holds temporary files.
        wall_seconds: Limit on elapsed time, in seconds.
        cpu_seconds: Limit on each process's processor time, in seconds.
        memory_bytes: Limit on each process's address space.
        file_bytes: Limit on the size of each file written.
        output_bytes: How much of stdout and of stderr is kept.
        max_processes: How many processes and threads it may have, beyond those that the user has
            at the start.
        env: Variables to add. From the caller's environment only `PATH` and the language come.
        protection: `"basic"`, `"standard"` or `"hardened"`.

    Returns:
        How it ended. That includes a program that is not there: status 127.

    Raises:
        SandboxFault: The command could not be started or confined, or processes of it are left.
    """
    policy = Policy(
        level=protection,
        readable=(*SYSTEM_PATHS, *map(os.path.abspath, readable)),
        writable=("/dev/null", *map(os.path.abspath, writable)),
        cpu_seconds=cpu_seconds,
        memory_bytes=memory_bytes,
        file_bytes=file_bytes,
        max_processes=max_processes,
    )
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    folders = [path for path in writable if os.path.isdir(path)]
    environment.update({"HOME": os.fspath(cwd), "TMPDIR": folders[0] if folders else "/tmp"})
    environment.update(env or {})
    started = time.monotonic()
    report, told = os.pipe()
    order = {
        "command": list(command),
        "policy": policy,
        "wall_seconds": wall_seconds,
        "report": told,
    }
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", LAUNCHER, json.dumps(order)],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(told,),
            start_new_session=True,
        )
    except OSError as error:
        os.close(report)
        raise SandboxFault(f"the launcher of confined commands did not start: {error}") from error
    finally:
        os.close(told)
    with process:
        stdout, stderr = _Head(process.stdout, output_bytes), _Head(process.stderr, output_bytes)
        try:
            outcome = _outcome(report, started + wall_seconds + _GRACE_SECONDS)
        finally:
            # The session dies whole, also when the caller was interrupted.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            stdout.join()
            stderr.join()
    if "protections" not in outcome:
        why = outcome.get("fault") or stderr.text[-2000:] or "the launcher failed"
        raise SandboxFault(f"{command[0]}: could not be confined: {why}")
    if not outcome.get("nothing_left"):
        raise SandboxFault(f"{command[0]}: it, or processes that it started, could not be ended")
    return Finished(
        returncode=outcome["returncode"],
        stdout=stdout.text,
        stderr=outcome.get("fault", stderr.text),
        timed_out=outcome["timed_out"],
        truncated=stdout.truncated or stderr.truncated,
        seconds=time.monotonic() - started,
        cpu_seconds=outcome["cpu_seconds"],
        peak_memory=outcome["peak_memory"],
        protections=tuple(sorted([*outcome["protections"], "environment", "process_group"])),
    )


def protections(level: str) -> tuple[str, ...]:
    """Names of what a protection level brings on this machine, found by trying it.

    Raises:
        SandboxFault: Nothing can be run confined here.
    """
    with tempfile.TemporaryDirectory(prefix="kernelgym-") as folder:
        return run_confined(
            ["true"],
            cwd=folder,
            writable=[folder],
            cpu_seconds=10,
            memory_bytes=2**30,
            file_bytes=2**20,
            max_processes=256,
            protection=level,
        ).protections


def _outcome(report: int, deadline: float) -> dict[str, Any]:
    """What the launcher says until it ends or the deadline passes."""
    said = b""
    with open(report, "rb", buffering=0) as stream:
        poll = select.poll()
        poll.register(stream, select.POLLIN)
        while poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            block = stream.read(2**16)
            if not block:
                break
            said += block
    outcome: dict[str, Any] = {}
    for line in said.splitlines():
        outcome.update(json.loads(line))
    return outcome


class _Head(threading.Thread):
    """Reads a stream to its end and keeps the first bytes, so that the writer never blocks."""

    def __init__(self, stream: IO[bytes] | None, limit: int) -> None:
        super().__init__(daemon=True)
        assert stream is not None
        self._stream = stream
        self._limit = limit
        self._kept = bytearray()
        self.truncated = False
        self.start()

    def run(self) -> None:
        """Drains the stream."""
        while block := self._stream.read1(2**16):  # type: ignore[attr-defined]
            room = self._limit - len(self._kept)
            self._kept += block[:room]
            self.truncated |= len(block) > room

    @property
    def text(self) -> str:
        """What was kept."""
        return self._kept.decode("utf-8", errors="replace")
