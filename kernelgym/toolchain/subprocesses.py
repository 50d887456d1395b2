"""`subprocess.Popen` as a candidate's process has it on a GPU: a request to the build service.

A candidate may start no process, but packages that it uses call compilers as processes: Triton
`ptxas` and a C compiler, PyCUDA nvcc. Those calls, and only those, are carried out by the build
service, with their files sent along. Any other command is refused as the kernel would refuse it.
"""

from __future__ import annotations

import errno
import io
import os
import re
import subprocess
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kernelgym.toolchain.build import BuildRequest, BuildResult, ToolCall, ToolOutcome

__all__ = ["install"]

_COMPILERS = ("gcc", "cc", "clang")
_INPUT_SUFFIXES = (".ptx", ".c", ".cc", ".cpp", ".cu")
_LIBCUDA = re.compile(r"\S+/libcuda\.so\.\S+")


def install(build: Callable[[BuildRequest], BuildResult], target: str) -> Callable[[], None]:
    """Puts `ToolProcess` in the place of `subprocess.Popen`.

    Args:
        build: Sends a request to the build service and waits for its answer.
        target: What is built for.

    Returns:
        What puts the original back.
    """
    original = subprocess.Popen

    class ToolProcess(_ToolProcess):
        """Bound to this process's build service."""

        def _ask(self, call: ToolCall) -> ToolOutcome:
            result = build(BuildRequest(call.tool, target, tool=call))
            return result.outcome or ToolOutcome(1, stderr=result.why)

    subprocess.Popen = ToolProcess  # type: ignore[misc, assignment]

    def restore() -> None:
        subprocess.Popen = original  # type: ignore[misc]

    return restore


class _ToolProcess:
    """A process that has ended by the time it is made, with the interface of `subprocess.Popen`."""

    __class_getitem__: Any = classmethod(types.GenericAlias)

    def __init__(
        self,
        args: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        bufsize: int = -1,
        executable: Any = None,
        stdin: Any = None,
        stdout: Any = None,
        stderr: Any = None,
        *ignored: Any,
        cwd: str | os.PathLike[str] | None = None,
        shell: bool = False,
        text: bool | None = None,
        universal_newlines: bool | None = None,
        encoding: str | None = None,
        errors: str | None = None,
        **rest: Any,
    ) -> None:
        listed = [args] if isinstance(args, (str, os.PathLike)) else args
        words = [str(word) for word in listed]
        self.args = args
        self.pid = 0
        self.stdin: Any = io.BytesIO() if stdin == subprocess.PIPE else None
        outcome = self._outcome(words, Path(cwd or "."), shell or executable is not None)
        self.returncode = outcome.returncode
        told = outcome.stdout.encode()
        wrong = outcome.stderr.encode()
        if stderr == subprocess.STDOUT:
            told, wrong = told + wrong, b""
        as_text = bool(text or universal_newlines or encoding or errors)
        self.stdout = self._deliver(told, stdout, as_text)
        self.stderr = self._deliver(wrong, stderr, as_text)

    def __enter__(self) -> _ToolProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()

    def communicate(self, input: Any = None, timeout: float | None = None) -> tuple[Any, Any]:
        """What it wrote to the pipes that were asked for."""
        return tuple(s.read() if s is not None else None for s in (self.stdout, self.stderr))  # type: ignore[return-value]

    def poll(self) -> int:
        """Its exit status."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status."""
        return self.returncode

    def kill(self) -> None:
        """It has ended already."""

    terminate = kill

    def _ask(self, call: ToolCall) -> ToolOutcome:
        raise NotImplementedError

    def _outcome(self, words: list[str], cwd: Path, by_shell: bool) -> ToolOutcome:
        name = os.path.basename(words[0])
        if name == "ldconfig" and words[1:] == ["-p"] and not by_shell:
            return ToolOutcome(0, stdout=_loaded_driver())
        tool = "cc" if name in _COMPILERS else name
        if by_shell or tool not in ("ptxas", "ptxas-blackwell", "cc", "nvcc"):
            raise PermissionError(
                errno.EPERM, f"a candidate may start no process; not allowed: {words[0]!r}"
            )
        call, places = _call(tool, words[1:], cwd)
        outcome = self._ask(call)
        for written, content in outcome.outputs:
            if written in places:
                places[written].write_bytes(content)
        return outcome

    @staticmethod
    def _deliver(content: bytes, where: Any, as_text: bool) -> Any:
        """Writes to a file that was given, or returns a stream to read from for a pipe."""
        if where == subprocess.PIPE:
            return (
                io.StringIO(content.decode("utf-8", "replace")) if as_text else io.BytesIO(content)
            )
        if where is None:
            os.write(2, content)
        elif where not in (subprocess.DEVNULL, subprocess.STDOUT):
            descriptor = where if isinstance(where, int) else where.fileno()
            while content:
                content = content[os.write(descriptor, content) :]
        return None


def _call(tool: str, words: Sequence[str], cwd: Path) -> tuple[ToolCall, dict[str, Path]]:
    """The call with plain names for files, and where its outputs go."""
    arguments: list[str] = []
    inputs: dict[str, bytes] = {}
    outputs: dict[str, Path] = {}
    after_o = False
    for word in words:
        path = cwd / word
        # Names are chosen here: packages draw random ones, and equal calls are run once.
        if after_o:
            name = f"output{len(outputs)}{path.suffix}"
            outputs[name] = path
            arguments.append(name)
        elif not word.startswith("-") and path.suffix in _INPUT_SUFFIXES and path.is_file():
            name = f"input{len(inputs)}{path.suffix}"
            # Triton writes where its source lies, which is another folder in each process.
            inputs[name] = path.read_bytes().replace(f"{os.getcwd()}/".encode(), b"")
            arguments.append(name)
        else:
            arguments.append(word)
        after_o = word == "-o"
    kind = next((w.lstrip("-") for w in words if w.lstrip("-") in ("cubin", "ptx", "fatbin")), "")
    if tool == "nvcc" and kind and not outputs:
        # As nvcc does it: in the current folder, by the input's name.
        named = [Path(word).stem for word in words if word.endswith(".cu")]
        outputs = {f"input{i}.{kind}": cwd / f"{stem}.{kind}" for i, stem in enumerate(named)}
    return ToolCall(tool, tuple(arguments), tuple(inputs.items()), tuple(outputs)), outputs


def _loaded_driver() -> str:
    """What `ldconfig -p` says of CUDA's driver: the library that this process has loaded."""
    found = set(_LIBCUDA.findall(Path("/proc/self/maps").read_text()))
    folders = sorted({os.path.dirname(path) for path in found})
    return "".join(f"\tlibcuda.so.1 (libc6) => {folder}/libcuda.so.1\n" for folder in folders)
