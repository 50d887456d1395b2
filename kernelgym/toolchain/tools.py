"""Compilers' tools that Python packages call as processes: what may be asked of them, and running one.

Triton compiles to PTX in its own process and has `ptxas` assemble it; it has a C compiler make the
stubs that launch its kernels. PyCUDA has nvcc make a cubin. A candidate may start no process, so each
of these is a request (`ToolCall`) to the build service, which runs the tool confined, in a folder
that holds the call's files alone. What the assembler says of a kernel is the grader's own evidence
of what was built.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import os
import platform
import re
import shutil
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kernelgym.errors import ToolchainFault
from kernelgym.toolchain.build import BuildRequest, KernelResources, ToolCall, ToolOutcome
from kernelgym.toolchain.cuda import MISSING_NVCC, demangled, find_nvcc, parse_resources
from kernelgym.toolchain.flags import screen_flags
from kernelgym.toolchain.sandbox import run_confined

__all__ = ["ToolRecord", "refused_arguments", "run_tool", "tool_key", "tool_path"]

_FORMAT = 1
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_MAX_NAME = 200
_MAX_INPUT_BYTES = 32 * 2**20
_MAX_OUTPUT_BYTES = 64 * 2**20
_MEMORY_BYTES = 8 * 2**30
_SAID_BYTES = 2**20
_NOT_FOUND = 127

_PTXAS = re.compile(
    r"-v|--verbose|-g|--device-debug|-lineinfo|--generate-line-info|-suppress-debug-info"
    r"|--suppress-debug-info|--?fmad=(?:true|false)|-O[0-4]|--opt-level(?:=[0-4])?|[0-4]"
    r"|(?:--gpu-name|-arch)=sm_\d{2,3}[af]?|-m64|--?maxrregcount=\d+|-w"
    r"|--?register-usage-level=\d+|--?(?:def-load-cache|dlcm|def-store-cache|dscm)=\w+"
    r"|--allow-expensive-optimizations=\w+|--?warn-[\w-]+|--version"
)
_CC = re.compile(
    r"-O[0-3]|-g|-w|-shared|-fPIC|-W(?!l,|a,|p,)[\w+=#-]+|-std=(?:c|gnu)(?:\+\+)?\d\w"
    r"|-l:?[\w.+-]+|-D[A-Za-z_]\w*(?:=[\w.]*)?|-f(?:no-)?strict-aliasing|--version"
)
# nvcc's own ways to say what to make; its other flags are screened as those of `load_inline` are.
_NVCC = re.compile(r"--?(?:cubin|ptx|fatbin|preprocess)|-E|-Xptxas=-v|--version|-V|-m64")
_FOLDER = re.compile(r"-(?P<kind>[IL])(?P<path>/.*)")
# Whose headers and libraries a tool is sent to.
_PACKAGES = ("triton", "pycuda", "numpy")
_TOOLS = {"ptxas": _PTXAS, "ptxas-blackwell": _PTXAS, "cc": _CC, "nvcc": _NVCC}


class ToolRecord(msgspec.Struct, frozen=True):
    """A call as the cache keeps it; `kernels` are those that the tool says it compiled."""

    outcome: ToolOutcome
    kernels: tuple[KernelResources, ...] = ()
    timed_out: bool = False


def tool_path(tool: str) -> str:
    """The program behind a tool's name: Triton's own assembler first, for its kernels' sake.

    Raises:
        ToolchainFault: It is not there.
    """
    if tool == "nvcc":
        found = find_nvcc()
        if found is None:
            raise ToolchainFault(MISSING_NVCC)
        return found
    if tool == "cc":
        found = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
        if found is None:
            raise ToolchainFault("expected a C compiler on the PATH, got none")
        return found
    triton = importlib.util.find_spec("triton")
    for folder in (triton.submodule_search_locations or ()) if triton is not None else ():
        path = Path(folder, "backends", "nvidia", "bin", tool)
        if os.access(path, os.X_OK):
            return str(path)
    nvcc = find_nvcc()
    beside = Path(nvcc).resolve().with_name("ptxas") if nvcc is not None else None
    for candidate in (str(beside), "/usr/local/cuda/bin/ptxas"):
        if os.access(candidate, os.X_OK):
            return candidate
    raise ToolchainFault(f"{tool}: expected it in Triton's package or beside nvcc, got none")


def tool_key(call: ToolCall, path: str) -> str:
    """Digest of all that the outcome depends on: the call, the program, and where headers lie."""
    facts = os.stat(path)
    identity = [_FORMAT, path, facts.st_size, facts.st_mtime_ns, platform.libc_ver()]
    meant = dataclasses.replace(call, arguments=tuple(_with_folders(call, _roots())))
    content = msgspec.json.encode([identity, msgspec.to_builtins(meant)])
    return hashlib.sha256(content).hexdigest()


def refused_arguments(call: ToolCall) -> str:
    """What is wrong with a call, in one sentence, or `""`."""
    allowed = _TOOLS.get(call.tool)
    if allowed is None:
        return f"expected one of the tools {', '.join(_TOOLS)}, got {call.tool!r}"
    names = [name for name, _ in call.inputs]
    for name in (*names, *call.outputs):
        if not _PLAIN_NAME.fullmatch(name) or len(name) > _MAX_NAME:
            return f"{call.tool}: expected plain file names, got {name!r}"
    if len(set(names)) != len(names) or len(call.outputs) > 1:
        return f"{call.tool}: expected distinct inputs and at most one output"
    if sum(len(content) for _, content in call.inputs) > _MAX_INPUT_BYTES:
        return f"{call.tool}: expected at most {_MAX_INPUT_BYTES} bytes of input"
    rest = []
    words = iter(_joined(call.arguments))
    for word in words:
        if word == "-o":
            if next(words, None) not in call.outputs:
                return f"{call.tool}: expected the name of an output after -o"
        elif word in names or _FOLDER.fullmatch(word) or allowed.fullmatch(word):
            continue
        else:
            rest.append(word)
    if call.tool == "nvcc" and rest:
        flags = screen_flags(BuildRequest("", "", extra_cuda_cflags=tuple(rest)))
        return flags.refused[0].text if flags.refused else ""
    return f"{call.tool}: the argument {rest[0]!r} is not allowed" if rest else ""


def run_tool(call: ToolCall, path: str, *, timeout: float, protection: str) -> ToolRecord:
    """Runs a call that has nothing wrong with it.

    Args:
        call: What to run.
        path: The program, from `tool_path`.
        timeout: Wall-clock limit in seconds.
        protection: How it is confined.

    Raises:
        ToolchainFault: The program cannot be started.
        SandboxFault: It could not be confined.
    """
    roots = _roots()
    with tempfile.TemporaryDirectory(prefix="kernelgym-") as folder:
        for name, content in call.inputs:
            Path(folder, name).write_bytes(content)
        finished = run_confined(
            [path, *_with_folders(call, roots)],
            cwd=folder,
            readable=(*roots, *_toolkit(path), *_drivers(call)),
            writable=(folder,),
            wall_seconds=timeout,
            cpu_seconds=int(timeout) + 1,
            memory_bytes=_MEMORY_BYTES,
            file_bytes=_MAX_OUTPUT_BYTES,
            output_bytes=_SAID_BYTES if "-E" not in call.arguments else 2 * _MAX_INPUT_BYTES,
            max_processes=256,
            env={"LC_ALL": "C"},
            protection=protection,
        )
        if finished.returncode == _NOT_FOUND:
            raise ToolchainFault(f"{path}: {finished.stderr}")
        outputs = tuple(_written(Path(folder, name)) for name in call.outputs)
        kernels = demangled(parse_resources(finished.stderr + finished.stdout), folder)
    outcome = ToolOutcome(
        returncode=finished.returncode,
        stdout=finished.stdout.replace(folder + "/", ""),
        stderr=finished.stderr.replace(folder + "/", ""),
        outputs=tuple(written for written in outputs if written is not None),
    )
    made = kernels if finished.returncode == 0 and outcome.outputs else ()
    return ToolRecord(outcome, made, finished.timed_out)


def _joined(arguments: Sequence[str]) -> Iterator[str]:
    """Words, with `-arch sm_90`, `--gpu-name sm_90` and `-I folder` made one."""
    words = iter(arguments)
    for word in words:
        if word in ("-arch", "--gpu-name", "-code", "--gpu-code", "-gencode", "-std", "--std"):
            yield f"{word}={next(words, '')}"
        elif word in ("-I", "-L"):
            yield word + next(words, "")
        else:
            yield word


def _with_folders(call: ToolCall, roots: Sequence[str]) -> Iterator[str]:
    """The arguments; folders that are not a package's or the system's are left out.

    Packages name the scratch folder of the call, too; here that is the current one.
    """
    allowed = (*roots, "/usr")
    for word in _joined(call.arguments):
        match = _FOLDER.fullmatch(word)
        folder = Path(os.path.realpath(match["path"])) if match is not None else None
        if folder is None or any(map(folder.is_relative_to, allowed)) or _is_drivers(folder):
            yield word
    if call.tool in ("cc", "nvcc"):
        yield "-I."
    if call.tool == "nvcc" and not {"--version", "-V", "-E", "--preprocess"} & {*call.arguments}:
        yield "-Xptxas=-v"


def _drivers(call: ToolCall) -> Iterator[str]:
    """The driver's library, where a call names its folder."""
    for match in filter(None, map(_FOLDER.fullmatch, _joined(call.arguments))):
        folder = Path(os.path.realpath(match["path"]))
        if match["kind"] == "L" and _is_drivers(folder):
            yield os.path.realpath(folder / "libcuda.so.1")
            yield str(folder / "libcuda.so.1")


def _is_drivers(folder: Path) -> bool:
    """Whether CUDA's driver lies there, which a container may have anywhere."""
    return (folder / "libcuda.so.1").exists()


def _roots() -> tuple[str, ...]:
    """Folders of Python packages and of Python's headers, which hold nothing private."""
    paths = sysconfig.get_paths()
    named = [paths["purelib"], paths["platlib"], paths["include"]]
    for package in _PACKAGES:
        spec = importlib.util.find_spec(package)
        named += (spec.submodule_search_locations or ()) if spec is not None else ()
    return tuple(dict.fromkeys(os.path.realpath(path) for path in named if os.path.isdir(path)))


def _toolkit(path: str) -> Iterator[str]:
    """The folder that a program of CUDA's was installed to, and the usual one."""
    folder = Path(path).resolve().parent.parent
    if folder.name not in ("", "usr"):
        yield str(folder)
    if os.path.isdir("/usr/local/cuda"):
        yield os.path.realpath("/usr/local/cuda")


def _written(path: Path) -> tuple[str, bytes] | None:
    # The tool is trusted, what it compiled is not: nothing but a plain file is read.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as stream:
        return path.name, stream.read(_MAX_OUTPUT_BYTES)
