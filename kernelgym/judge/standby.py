"""Processes that wait for a candidate: started, confined, and with the GPU open.

To open a GPU takes a fifth of a second, more than all else that comes before a candidate's first
line. So some processes are kept ahead. What they hold costs GPU memory (a CUDA context each), and to
start one while a candidate is being timed would disturb that: they are made one at a time, in a
thread of their own, under the lock of the GPU.
"""

from __future__ import annotations

import contextlib
import pathlib
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable
from typing import NamedTuple

from kernelgym.errors import EnvironmentFault, SandboxFault
from kernelgym.judge import protocol
from kernelgym.judge.process import CandidateProcess, Zygote

__all__ = ["Standby", "Waiting", "remove_folder"]


class Waiting(NamedTuple):
    """A process without a candidate yet, and the folder that it may write to."""

    candidate: CandidateProcess
    scratch: pathlib.Path


class Standby:
    """Keeps processes ahead for candidates that are judged alike.

    Args:
        zygote: Where they are forked from.
        setup: Gives the first command for a process with this scratch folder.
        begin: The command that opens the GPU.
        turn: A context in which the GPU is ours alone.
        count: How many to keep ahead.
    """

    def __init__(
        self,
        zygote: Zygote,
        setup: Callable[[pathlib.Path], protocol.Setup],
        begin: protocol.Begin,
        turn: Callable[[], contextlib.AbstractContextManager[object]],
        count: int = 3,
    ) -> None:
        self._zygote = zygote
        self._setup = setup
        self._begin = begin
        self._turn = turn
        self._count = count
        self._lock = threading.Lock()
        self._ready: list[Waiting] = []
        self._used: list[Waiting] = []
        self._thread: threading.Thread | None = None
        self._closed = False

    def take(self) -> Waiting:
        """A process for a candidate; one is made where none is ready.

        Raises:
            SandboxFault: It could not be started, or did not open the GPU.
        """
        while True:
            with self._lock:
                waiting = self._ready.pop(0) if self._ready else None
            if waiting is None:
                return self._made()
            if waiting.candidate.running():
                return waiting
            self._end(waiting)

    def give_back(self, waiting: Waiting) -> None:
        """Ends a process that has had its candidate, and starts another, in the background."""
        waiting.candidate.kill()
        with self._lock:
            self._used.append(waiting)
        self.refill()

    def refill(self) -> None:
        """Starts what is missing, in the background."""
        with self._lock:
            busy = self._thread is not None and self._thread.is_alive()
            if self._closed or busy:
                return
            self._thread = threading.Thread(target=self._work, name="kernelgym-standby")
            self._thread.daemon = True
            self._thread.start()

    def close(self) -> None:
        """Ends all processes. Calling it twice is fine."""
        with self._lock:
            self._closed = True
            thread = self._thread
        if thread is not None:
            thread.join()
        for waiting in (*self._used, *self._ready):
            self._end(waiting)
        self._used, self._ready = [], []

    def _work(self) -> None:
        while True:
            with self._lock:
                used, self._used = self._used, []
                missing = not self._closed and len(self._ready) < self._count
            for waiting in used:
                self._end(waiting)
            if not missing:
                with self._lock:
                    # Decided under the lock: whoever gives one back from now on finds no thread.
                    if not self._used or self._closed:
                        self._thread = None
                        return
                continue
            try:
                with self._turn():
                    made = self._made()
            except EnvironmentFault:
                with self._lock:
                    self._thread = None
                return  # Whoever needs one makes it, and is told what is wrong.
            with self._lock:
                self._ready.append(made)

    def _made(self) -> Waiting:
        scratch = pathlib.Path(tempfile.mkdtemp(prefix="kernelgym-"))
        try:
            candidate = CandidateProcess(self._zygote, namespace=False)
        except BaseException:
            remove_folder(scratch)
            raise
        waiting = Waiting(candidate, scratch)
        try:
            candidate.setup(self._setup(scratch))
            answer = candidate.ask(self._begin, protocol.Begun)
        except (protocol.CandidateGone, protocol.CandidateTimeout) as error:
            self._end(waiting)
            raise SandboxFault(f"a candidate's process did not open the GPU: {error}") from error
        except BaseException:
            self._end(waiting)
            raise
        if isinstance(answer, protocol.Failed):
            self._end(waiting)
            raise SandboxFault(
                f"expected a candidate's process to open the GPU, got {answer.kind}: "
                f"{answer.message}"
            )
        return waiting

    def _end(self, waiting: Waiting) -> None:
        waiting.candidate.close()
        remove_folder(waiting.scratch)


def remove_folder(folder: pathlib.Path) -> None:
    """Removes a scratch folder, however deep a candidate has made it."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:
        subprocess.run(["rm", "-rf", "--", str(folder)], check=False)
