"""The trusted side of a candidate's process: starting it, talking to it, ending it.

Threat model, in short (in full in `docs/threat-model.md`). There are two adversaries.

The *candidate*'s process may do anything that its confinement allows, and may say anything. It never
sees the reference, the expected outputs, the grader's memory or the salt. Its answers carry no
verdict; the grader reads output values from memory that it shares, and keeps its own clock. What is
counted or stamped in that process (the emulator's counts, torch's operators, device time) is
evidence that native code made for this judge could forge; it is witnessed twice where that is cheap,
and bounded by values, by the grader's clock and by physics. When a judgement ends, the process and
whatever it started are killed.

An *agent with a shell* beside the judge, as the same user, can read this process's memory and change
this file. Nothing here holds against it: its verdicts are never `verified`, and a board's come from
a judge under another user or in a container.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from kernelgym.errors import SandboxFault
from kernelgym.judge import protocol
from kernelgym.judge.zygote import EXITED, START
from kernelgym.toolchain.build import BuildRequest, BuildResult

__all__ = ["CandidateProcess", "Zygote"]

_START_SECONDS = 120.0
_END_SECONDS = 5.0
# Their time is not the candidate's, so their number is limited. An autotuner asks for many tools,
# each of which takes a fraction of a second.
_MAX_BUILDS = 32
_MAX_TOOL_CALLS = 512
_MAX_TOOL_SECONDS = 300.0
AnswerT = TypeVar("AnswerT")


class Zygote:
    """The process that candidates are forked from; started on first use, restarted if it dies."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._serial = 0
        self._launches = 0
        self._closed = False
        self._pids: dict[int, int] = {}
        self._exits: dict[int, int] = {}
        self._changed = threading.Condition()

    @property
    def losses(self) -> int:
        """How often a zygote has ended, whoever ended it; what it had forked ended with it."""
        with self._lock:
            return self._launches - (not self._ended())

    def start(self, connection: socket.socket, *, namespace: bool = True) -> int:
        """Forks a candidate that serves `connection`.

        Args:
            connection: Its end of the channel.
            namespace: Whether it gets a namespace of process ids, where the kernel allows one.

        Returns:
            A serial number, by which `wait` and `kill` know it.

        Raises:
            SandboxFault: The zygote could not be started, did not fork, or is closed.
        """
        with self._lock:
            if self._closed:
                raise SandboxFault("expected an open judge, this one is closed")
            if self._process is None or self._process.poll() is not None:
                self._launch()
            assert self._control is not None
            self._serial += 1
            serial = self._serial
            try:
                socket.send_fds(
                    self._control, [START.pack(serial, namespace)], [connection.fileno()]
                )
            except OSError as error:
                raise SandboxFault(f"the zygote is gone: {error}") from error
        with self._changed:
            if not self._changed.wait_for(
                lambda: serial in self._pids or self._ended(), timeout=_START_SECONDS
            ):
                raise SandboxFault(f"no candidate process within {_START_SECONDS} s")
            if serial not in self._pids:
                raise SandboxFault("the zygote ended before it forked")
        return serial

    def kill(self, serial: int) -> None:
        """Ends a candidate and whatever it started."""
        with self._changed:
            pid = self._pids.get(serial)
            if pid is None or serial in self._exits or self._ended():
                return
        # The supervisor kills its child, and with it the child's pid namespace.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)

    def wait(self, serial: int, timeout: float) -> int | None:
        """The wait status once the candidate has ended, or None after `timeout` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: serial in self._exits or self._ended(), timeout=timeout)
            return self._exits.get(serial)

    def forget(self, serial: int) -> None:
        """Drops what is known of a candidate that has ended."""
        with self._changed:
            self._pids.pop(serial, None)
            self._exits.pop(serial, None)

    def close(self) -> None:
        """Ends the zygote and every candidate; no other can be started."""
        with self._lock:
            self._closed = True
            if self._control is not None:
                # Closing alone would leave the listening thread, and so the zygote, waiting.
                with contextlib.suppress(OSError):
                    self._control.shutdown(socket.SHUT_RDWR)
                self._control.close()
                self._control = None
            if self._process is not None:
                try:
                    self._process.wait(timeout=5)
                except subprocess.TimeoutExpired:
                    self._process.kill()
                    self._process.wait()
                self._process = None

    def _ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def _launch(self) -> None:
        if self._control is not None:
            self._control.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {
            name: os.environ[name]
            for name in ("PATH", "LD_LIBRARY_PATH", "LANG", "CUDA_HOME", "VIRTUAL_ENV")
            if name in os.environ
        }
        # One thread, so that forking is safe; see the zygote's docstring.
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            environment[name] = "1"
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kernelgym.judge.zygote", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self._launches += 1
        self._control = ours
        threading.Thread(
            target=self._listen, args=(ours, self._process), name="kernelgym-zygote", daemon=True
        ).start()

    def _listen(self, control: socket.socket, process: subprocess.Popen[bytes]) -> None:
        while True:
            try:
                notice = control.recv(EXITED.size)
            except OSError:
                notice = b""
            with self._changed:
                if len(notice) == EXITED.size:
                    serial, pid, status = EXITED.unpack(notice)
                    if status == -1:
                        self._pids[serial] = pid
                    else:
                        self._exits[serial] = status
                self._changed.notify_all()
            if len(notice) < EXITED.size:
                return


class CandidateProcess:
    """One candidate's process, for the time of one judgement; a context manager.

    Args:
        zygote: Where to fork it from.
        namespace: See `Zygote.start`.
    """

    def __init__(self, zygote: Zygote, *, namespace: bool = True) -> None:
        self._zygote = zygote
        self._build: Callable[[BuildRequest], BuildResult] | None = None
        self._left = _START_SECONDS
        self._closed = False
        self.builds: list[BuildResult] = []
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._channel = protocol.Channel(ours)
        self._serial = zygote.start(theirs, namespace=namespace)
        theirs.close()

    def __enter__(self) -> CandidateProcess:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def setup(self, command: protocol.Setup) -> None:
        """Sends the first command, which has no answer."""
        self._channel.command(command)

    def attend(self, build: Callable[[BuildRequest], BuildResult], run_timeout: float) -> None:
        """From here on it has a candidate.

        Args:
            build: Answers the candidate's requests for builds; its time is not the candidate's.
            run_timeout: Seconds that the candidate may take in all, builds apart.
        """
        self._build = build
        self._left = run_timeout

    def running(self) -> bool:
        """Whether the process has not ended."""
        return not self._closed and self._zygote.wait(self._serial, timeout=0.0) is None

    def ask(
        self, command: protocol.Command, expected: type[AnswerT], fds: tuple[int, ...] = ()
    ) -> AnswerT | protocol.Failed:
        """Sends a command and waits for its answer, building what the candidate asks for.

        Raises:
            protocol.CandidateTimeout: The candidate's time is over.
            protocol.CandidateGone: The process has ended, or answered with something else.
        """
        self._channel.command(command, fds)
        while True:
            started = time.monotonic()
            try:
                answer = self._channel.answer(max(self._left, 0.0))
            finally:
                self._left -= time.monotonic() - started
            if isinstance(answer, protocol.BuildAsked):
                if self._build is None or self._has_built_enough():
                    raise protocol.CandidateTimeout
                result = self._build(answer.request)
                self.builds.append(result)
                self._channel.command(protocol.Built(result))
            elif isinstance(answer, (expected, protocol.Failed)):
                return answer
            else:
                raise protocol.CandidateGone(
                    f"expected {expected.__name__}, got {type(answer).__name__}"
                )

    def _has_built_enough(self) -> bool:
        tools = [build for build in self.builds if build.outcome is not None]
        return (
            len(self.builds) - len(tools) >= _MAX_BUILDS
            or len(tools) >= _MAX_TOOL_CALLS
            or sum(build.seconds for build in tools) >= _MAX_TOOL_SECONDS
        )

    def death(self) -> str:
        """How the process ended, for a reader: `"killed by SIGSEGV"`, `"exit status 0"`."""
        status = self._zygote.wait(self._serial, timeout=2.0)
        if status is None:
            return "the process closed its channel"
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            return f"killed by {signal.Signals(number).name}"
        return f"exit status {os.WEXITSTATUS(status)}"

    def kill(self) -> None:
        """Kills the process and whatever it started, without waiting until it is gone."""
        self._zygote.kill(self._serial)

    def close(self) -> None:
        """Kills the process and whatever it started, and waits until it is gone."""
        self._closed = True
        self.kill()
        self._channel.close()
        self._zygote.wait(self._serial, timeout=_END_SECONDS)
        self._zygote.forget(self._serial)
