"""The program that compiles device code with NVRTC: one process that forks for each source.

NVRTC takes a second to read CUDA's headers and a twentieth of that once it has precompiled them, but
keeps what it has precompiled in its own memory. So one process precompiles the headers that are asked
for, and forks a child for each source: the child inherits them, takes all rights away from itself,
compiles one foreign text, answers, and is gone.

`python -I -S nvrtc_server.py ORDER` with ORDER as JSON: `control` (a descriptor), `library` (NVRTC's
path), `builtins` (its companion), `headers` (what to precompile at the start) and `options`. Each
request is JSON with a socket for the answer; see `kernelgym.toolchain.nvrtc_client`.

Run as a file, without site-packages: it imports the standard library and the confinement alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import re
import signal
import socket
import sys
import tempfile
import warnings
from typing import Any

sys.path.append(os.path.dirname(os.path.abspath(__file__)))

from confinement import Policy, confine  # type: ignore[import-not-found]
from confinement.libc import prctl  # type: ignore[import-not-found]

_PR_SET_PDEATHSIG = 1
_REQUEST_BYTES = 2**16
_MOST_PRECOMPILED = 12


class Nvrtc:
    """NVRTC's C interface."""

    def __init__(self, library: str, builtins: str) -> None:
        # It opens its companion by name; one that is loaded already is found wherever it lies.
        if builtins:
            ctypes.CDLL(builtins, mode=ctypes.RTLD_GLOBAL)
        self._c = ctypes.CDLL(library)
        self._c.nvrtcGetErrorString.restype = ctypes.c_char_p

    def compile(
        self, name: str, text: bytes, options: list[str], expressions: list[str]
    ) -> tuple[bool, str, bytes]:
        """Compiles one source.

        Args:
            name: What messages call it where no `#line` says otherwise.
            text: The source.
            options: NVRTC's.
            expressions: Instantiations to make, such as `"k<float, 4>"`.

        Returns:
            Whether it compiled, the log, and the cubin.
        """
        program = ctypes.c_void_p()
        self._check(
            self._c.nvrtcCreateProgram(ctypes.byref(program), text, name.encode(), 0, None, None)
        )
        for expression in expressions:
            self._check(self._c.nvrtcAddNameExpression(program, expression.encode()))
        encoded = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        failed = self._c.nvrtcCompileProgram(program, len(options), encoded)
        log = self._bytes(program, "ProgramLog").rstrip(b"\0").decode("utf-8", "replace")
        cubin = b"" if failed else self._bytes(program, "CUBIN")
        self._c.nvrtcDestroyProgram(ctypes.byref(program))
        return not failed, log, cubin

    def _bytes(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._check(getattr(self._c, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        self._check(getattr(self._c, f"nvrtcGet{what}")(program, buffer))
        return buffer.raw

    def _check(self, status: int) -> None:
        if status:
            raise RuntimeError(self._c.nvrtcGetErrorString(status).decode())


class _Precompiled:
    """Which sets of headers this process has precompiled, and with which options."""

    def __init__(self, nvrtc: Nvrtc) -> None:
        self._nvrtc = nvrtc
        self._known: dict[tuple[tuple[str, ...], tuple[str, ...]], bool] = {}
        self._folder = tempfile.mkdtemp(prefix="kernelgym-pch-")
        os.chmod(self._folder, 0o755)

    @property
    def folder(self) -> str:
        """Where NVRTC may keep files of them."""
        return self._folder

    def options(self, headers: tuple[str, ...], options: tuple[str, ...]) -> list[str]:
        """Options that use the precompiled headers, which are made on first demand."""
        key = (headers, options)
        used = [*options, "--pch", f"--pch-dir={self._folder}", "--pch-messages=false"]
        if key not in self._known and len(self._known) < _MOST_PRECOMPILED:
            text = preamble(headers) + "__global__ void kg_precompiled() {}\n"
            self._known[key] = self._nvrtc.compile("kg.cu", text.encode(), used, [])[0]
        return used if self._known.get(key) else [*options]


def preamble(headers: tuple[str, ...]) -> str:
    """The lines that every source with these headers starts with."""
    return "".join(f"#include <{header}>\n" for header in headers)


def main() -> None:
    """Serves requests until the other side hangs up."""
    order = json.loads(sys.argv[1])
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    control = socket.socket(fileno=order["control"])
    nvrtc = Nvrtc(order["library"], order["builtins"])
    precompiled = _Precompiled(nvrtc)
    precompiled.options(tuple(order["headers"]), tuple(order["options"]))
    gc.freeze()
    # NVRTC's threads are idle between compilations, and a child does not wait for them.
    warnings.simplefilter("ignore", DeprecationWarning)
    while True:
        message, fds, _, _ = socket.recv_fds(control, _REQUEST_BYTES, 1)
        if not message:
            break
        request = json.loads(message)
        headers, options = tuple(request["headers"]), tuple(request["options"])
        used = precompiled.options(headers, options) if request["precompile"] else [*options]
        pid = os.fork()
        if pid == 0:
            control.close()
            _serve(nvrtc, request, used, socket.socket(fileno=fds[0]), precompiled.folder)
        os.close(fds[0])
    with contextlib.suppress(OSError):
        os.rmdir(precompiled.folder)


def _serve(
    nvrtc: Nvrtc, request: dict[str, Any], options: list[str], answer: socket.socket, folder: str
) -> None:
    """Compiles one request in a child of its own; never returns."""
    try:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        policy = Policy(*request["policy"])
        policy = policy._replace(
            readable=(*policy.readable, folder), memory_bytes=_beyond(policy.memory_bytes)
        )
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        with open(request["source"], "rb") as file:
            text = file.read()
        os.chdir(request["folder"])
        os.environ["TMPDIR"] = request["temporary"]
        signal.setitimer(signal.ITIMER_REAL, request["wall_seconds"])
        protections = confine(policy)
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # the change of user has reset it
        text = preamble(tuple(request["headers"])).encode() + text
        expressions = [*request["expressions"], *map(_expression, request["instantiations"])]
        done, log, cubin = nvrtc.compile(request["name"], text, options, expressions)
        if not done and expressions and not request["instantiations"]:
            # An expression that was read off a launch may mean something that is local there.
            done, log, cubin = nvrtc.compile(request["name"], text, options, [])
        head = {"done": done, "log": log, "bytes": len(cubin), "protections": protections}
        head["names"] = {name: _expression(name) for name in _entries(log)}
        answer.sendall(json.dumps(head).encode() + b"\n" + cubin)
    except BaseException as error:
        with contextlib.suppress(OSError):
            fault = {"fault": f"{type(error).__name__}: {error}"}
            answer.sendall(json.dumps(fault).encode() + b"\n")
    finally:
        os._exit(0)


def _beyond(limit: int | None) -> int | None:
    """A limit on address space, beyond what is mapped already."""
    if limit is None:
        return None
    with open("/proc/self/statm") as statm:
        return limit + int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def _entries(log: str) -> list[str]:
    return re.findall(r"Compiling entry function '([^']+)'", log)


def demangled(name: str) -> str:
    """A C++ name as it is written, or the name itself where it is none."""
    library = ctypes.CDLL("libstdc++.so.6")
    library.__cxa_demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    made = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if not made:
        return name
    return ctypes.cast(made, ctypes.c_char_p).value.decode()  # type: ignore[union-attr]


def _expression(name: str) -> str:
    """The expression that names an instantiation: no result type, no parameters."""
    text = demangled(name).removeprefix("void ")
    depth = 0
    for position, character in enumerate(text):
        if character == "(" and depth == 0:
            return text[:position]
        depth += (character in "<(") - (character in ">)")
    return text


if __name__ == "__main__":
    main()
