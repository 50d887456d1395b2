"""The trusted side of `kernelgym.toolchain.nvrtc_server`: starting it, and asking it to compile."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from kernelgym.errors import SandboxFault, ToolchainFault
from kernelgym.toolchain.confinement import Policy
from kernelgym.toolchain.sandbox import SYSTEM_PATHS

__all__ = ["Compiled", "DeviceSource", "NvrtcServer"]

_SERVER = Path(__file__).with_name("nvrtc_server.py")
_MEMORY_BYTES = 4 * 2**30
_FILE_BYTES = 64 * 2**20
_GRACE_SECONDS = 5.0
_MOST_BYTES = 256 * 2**20
_START_SECONDS = 60.0


@dataclasses.dataclass(frozen=True)
class DeviceSource:
    """One source for NVRTC.

    Attributes:
        source: Path of the text.
        folder: The folder to compile in.
        temporary: A folder for temporary files, of this source's own.
        name: What messages call it where no `#line` says otherwise.
        headers: Headers that it starts with; precompiled once for each set of them.
        options: NVRTC's options.
        expressions: Instantiations of templates, as written, that it may need.
        instantiations: The same by their mangled names, that it does need.
        precompile: Whether its headers and options may be precompiled: they are nobody else's.
    """

    source: str
    folder: str
    temporary: str
    name: str
    headers: tuple[str, ...]
    options: tuple[str, ...]
    expressions: tuple[str, ...] = ()
    instantiations: tuple[str, ...] = ()
    precompile: bool = True


@dataclasses.dataclass(frozen=True)
class Compiled:
    """What NVRTC made of a source.

    Attributes:
        done: Whether it compiled.
        log: Its messages, with ptxas's.
        cubin: Machine code; empty when it did not compile.
        names: Kernels' mangled names, and as written.
        timed_out: Whether it was ended at the wall-clock limit.
    """

    done: bool
    log: str
    cubin: bytes = b""
    names: tuple[tuple[str, str], ...] = ()
    timed_out: bool = False


class NvrtcServer:
    """One server process, started on first use and restarted if it dies; for any thread.

    Args:
        library: Path of NVRTC.
        builtins: Path of its companion, or `""` where the loader finds it.
        headers: What to precompile at the start.
        options: The options that most sources are compiled with.
        readable: Folders of headers.
    """

    def __init__(
        self,
        library: str,
        builtins: str,
        headers: tuple[str, ...],
        options: tuple[str, ...],
        readable: tuple[str, ...],
    ) -> None:
        self._order = {
            "library": library,
            "builtins": builtins,
            "headers": headers,
            "options": options,
        }
        self._readable = (*readable, str(Path(library).resolve().parent))
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def start(self) -> None:
        """Starts the server, which precompiles its headers meanwhile."""
        with self._lock:
            self._connected()

    def close(self) -> None:
        """Ends the server. Calling it twice is fine."""
        with self._lock:
            if self._control is not None:
                self._control.close()
            if self._process is not None:
                try:
                    self._process.wait(timeout=5)
                except subprocess.TimeoutExpired:
                    self._process.kill()
                    self._process.wait()
            self._process = self._control = None

    def compile(self, asked: DeviceSource, *, timeout: float, protection: str) -> Compiled:
        """Compiles a source in a process of its own.

        Args:
            asked: What to compile.
            timeout: Wall-clock limit, in seconds.
            protection: How the process is confined.

        Raises:
            ToolchainFault: NVRTC could not be used.
            SandboxFault: The process could not be confined.
        """
        policy = Policy(
            level=protection,
            readable=(*SYSTEM_PATHS, *self._readable, asked.folder, os.path.dirname(asked.source)),
            writable=("/dev/null", asked.temporary),
            cpu_seconds=int(timeout) + 1,
            memory_bytes=_MEMORY_BYTES,
            file_bytes=_FILE_BYTES,
            new_processes=False,
        )
        request = {**dataclasses.asdict(asked), "policy": policy, "wall_seconds": timeout}
        ours, theirs = socket.socketpair()
        with ours:
            with theirs, self._lock:
                try:
                    message = json.dumps(request).encode()
                    socket.send_fds(self._connected(), [message], [theirs.fileno()])
                except OSError as error:
                    raise ToolchainFault(f"NVRTC's process is gone: {error}") from error
            deadline = time.monotonic() + timeout + _GRACE_SECONDS + _START_SECONDS
            return _read(ours, deadline, timeout)

    def _connected(self) -> socket.socket:
        if self._process is None or self._process.poll() is not None or self._control is None:
            if self._control is not None:
                self._control.close()
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            order = json.dumps({**self._order, "control": theirs.fileno()})
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(_SERVER), order],
                    pass_fds=(theirs.fileno(),),
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            self._control = ours
        return self._control


def _read(channel: socket.socket, deadline: float, timeout: float) -> Compiled:
    said = bytearray()
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    started = time.monotonic()
    while poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
        with contextlib.suppress(ConnectionResetError):
            block = channel.recv(2**20)
            said += block
            if block and len(said) <= _MOST_BYTES:
                continue
        break
    head, _, cubin = bytes(said).partition(b"\n")
    if not head:
        late = time.monotonic() - started >= timeout
        why = "it did not end within the time limit" if late else "it ended without an answer"
        return Compiled(False, f"nvrtc: error: {why}", timed_out=late)
    answer: dict[str, Any] = json.loads(head)
    if "fault" in answer:
        raise SandboxFault(f"NVRTC's process could not compile: {answer['fault']}")
    if answer["bytes"] != len(cubin):
        raise ToolchainFault(f"NVRTC: expected {answer['bytes']} bytes, got {len(cubin)}")
    return Compiled(answer["done"], answer["log"], cubin, tuple(answer["names"].items()))
