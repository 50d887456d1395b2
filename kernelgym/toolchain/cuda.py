"""nvcc where there is one: finding it, and compiling device code for an architecture without a GPU.

`check_with_nvcc` compiles to a cubin only. That brings the errors that nvcc really reports, and what
its assembler gives each kernel: registers, spills, shared memory.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import importlib.util
import os
import re
import shutil
import sysconfig
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kernelgym.errors import ToolchainFault
from kernelgym.toolchain.build import Diagnostic, KernelResources, SourceFile
from kernelgym.toolchain.diagnostics import parse_compiler_output, tidy
from kernelgym.toolchain.sandbox import Finished, run_confined
from kernelgym.toolchain.sourcemap import SourceMap

__all__ = [
    "MISSING_NVCC",
    "NvccReport",
    "check_with_nvcc",
    "demangled",
    "find_nvcc",
    "nvcc_version",
    "parse_resources",
]

MISSING_NVCC = (
    "nvcc: expected it on the PATH, in /usr/local/cuda or as a Python package, got none; "
    "pip install 'kernelgym[cuda]' brings it"
)

_ARCHITECTURE = re.compile(r"sm_\d{2,3}[af]?")
_OWN_FLAG = re.compile(r"--?(?:gpu-)?(?:arch(?:itecture)?|code|gencode|generate-code)=.*")
_STANDARD = re.compile(r"--?std=")
_UNKNOWN_ARCHITECTURE = re.compile(
    r"nvcc fatal\s*: (?:Unsupported gpu architecture|Value 'sm_\w+' is not defined)"
)
_ENTRY = re.compile(r"ptxas info\s*: Compiling entry function '(?P<name>[^']+)'")
_PROPERTIES = re.compile(r"ptxas info\s*: Function properties for (?P<name>.+?)\s*$")
_FRAME = re.compile(
    r"(?:ptxas\s+\.)?\s*(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, "
    r"(?P<loads>\d+) bytes spill loads"
)
_USED = re.compile(r"ptxas info\s*: Used (?P<registers>\d+) registers(?P<rest>.*)")
_MEMORY_BYTES = 8 * 2**30
_FILE_BYTES = 256 * 2**20


@dataclasses.dataclass(frozen=True)
class NvccReport:
    """What nvcc says of a set of translation units.

    Attributes:
        ok: Whether all of them compiled.
        timed_out: Whether the time limit ended one of them.
        diagnostics: Its messages, mapped to the workspace.
        kernels: Resources per kernel, names demangled, in the order of compilation.
        seconds: Wall-clock seconds.
    """

    ok: bool
    timed_out: bool
    diagnostics: tuple[Diagnostic, ...]
    kernels: tuple[KernelResources, ...]
    seconds: float


def find_nvcc() -> str | None:
    """The path of nvcc: on the `PATH`, in the usual folder, or from NVIDIA's Python packages."""
    found = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if found is not None:
        return found
    if importlib.util.find_spec("cuda") and importlib.util.find_spec("cuda.pathfinder"):
        pathfinder = importlib.import_module("cuda.pathfinder")
        # Old versions of it find libraries only.
        find = getattr(pathfinder, "find_nvidia_binary_utility", None)
        found = find("nvcc") if find is not None else None
        if found is not None:
            return str(found)
    packages = Path(sysconfig.get_path("purelib")) / "nvidia"
    wheels = sorted(packages.glob("cu*/bin/nvcc"), reverse=True)
    return next((str(path) for path in wheels if os.access(path, os.X_OK)), None)


def nvcc_version(nvcc: str) -> str:
    """The version line that nvcc prints, such as `"V13.0.88"`.

    Raises:
        ToolchainFault: It cannot be run.
    """
    with tempfile.TemporaryDirectory(prefix="kernelgym-") as folder:
        finished = _run([nvcc, "--version"], folder, nvcc, (), 30.0, "basic")
    match = re.search(r"\bV\d[\d.]+", finished.stdout)
    if match is None:
        raise ToolchainFault(f"{nvcc}: expected a version, got {finished.stderr[:300]!r}")
    return match.group()


def check_with_nvcc(
    units: Mapping[str, str],
    architecture: str,
    *,
    source_map: SourceMap,
    sources: Mapping[str, str] | None = None,
    files: Iterable[SourceFile] = (),
    include_dirs: Sequence[str] = (),
    flags: Sequence[str] = (),
    timeout: float = 120.0,
    protection: str = "standard",
    nvcc: str | None = None,
) -> NvccReport:
    """Compiles device code for a GPU architecture, side by side and confined; needs no GPU.

    Args:
        units: Texts of translation units by plain file name (`"cuda.cu"`).
        architecture: `"sm_90"` and the like.
        source_map: The workspace, which diagnostics point into.
        sources: Texts by the names that the units give them through `#line`; the units themselves
            by default.
        files: Workspace files that units may include.
        include_dirs: Folders of headers, searched first and in order.
        flags: Further flags, screened already; those that choose an architecture are left out.
        timeout: Wall-clock limit of each unit, in seconds.
        protection: How nvcc is confined.
        nvcc: Path of nvcc; found when not given.

    Returns:
        What it says.

    Raises:
        ToolchainFault: There is no nvcc, or it does not know the architecture.
        SandboxFault: It could not be confined.
        ValueError: The architecture or a unit's name is not of the expected form.
    """
    if not _ARCHITECTURE.fullmatch(architecture):
        raise ValueError(f"architecture: expected one such as 'sm_90', got {architecture!r}")
    nvcc = nvcc or find_nvcc()
    if nvcc is None:
        raise ToolchainFault(MISSING_NVCC)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kernelgym-") as folder:
        for path, text in [*((file.path, file.text) for file in files), *units.items()]:
            target = Path(folder, path)
            if not target.resolve().is_relative_to(Path(folder).resolve()):
                raise ValueError(f"expected a path inside the workspace, got {path!r}")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", errors="replace")
        kept = [flag for flag in flags if not _OWN_FLAG.fullmatch(flag)]
        if not any(_STANDARD.match(flag) for flag in kept):
            kept.append("-std=c++17")
        searched = [f"-I{path}" for path in (*include_dirs, ".")]

        def compile_unit(name: str) -> Finished:
            command = [
                *(nvcc, "-cubin", f"-arch={architecture}", "-Xptxas", "-v"),
                *(*searched, *kept, name, "-o", f"{name}.cubin"),
            ]
            return _run(command, folder, nvcc, include_dirs, timeout, protection)

        with concurrent.futures.ThreadPoolExecutor() as pool:
            finished = list(pool.map(compile_unit, units))
        messages = [run.stdout + run.stderr for run in finished]
        ok = all(run.returncode == 0 for run in finished)
        if any(_UNKNOWN_ARCHITECTURE.search(text) for text in messages):
            raise ToolchainFault(f"{nvcc} ({nvcc_version(nvcc)}) does not know {architecture}")
        kernels = [kernel for text in messages for kernel in parse_resources(text)]
        named = demangled(kernels, folder)
        found = [
            diagnostic
            for text in messages
            for diagnostic in parse_compiler_output(
                text, tool="nvcc", source_map=source_map, sources=sources or units, root=folder
            )
        ]
    return NvccReport(
        ok=ok,
        timed_out=any(run.timed_out for run in finished),
        diagnostics=tidy(found),
        kernels=named,
        seconds=time.monotonic() - started,
    )


def parse_resources(text: str) -> tuple[KernelResources, ...]:
    """Reads what `ptxas -v` says of each kernel; names stay mangled."""
    kernels: dict[str, KernelResources] = {}
    entry = described = ""
    for line in text.splitlines():
        if match := _ENTRY.match(line):
            entry = match["name"]
            kernels[entry] = KernelResources(entry)
        elif match := _PROPERTIES.match(line):
            described = match["name"]
        elif (match := _FRAME.match(line)) and described in kernels:
            kernels[described] = dataclasses.replace(
                kernels[described],
                local_bytes=int(match["stack"]),
                spill_store_bytes=int(match["stores"]),
                spill_load_bytes=int(match["loads"]),
            )
        elif (match := _USED.match(line)) and entry in kernels:
            kernels[entry] = dataclasses.replace(
                kernels[entry],
                registers=int(match["registers"]),
                shared_bytes=_bytes_of("smem", match["rest"]),
                # Newer assemblers do not say it; of shared memory, silence means none.
                constant_bytes=_bytes_of(r"cmem\[\d+\]", match["rest"]) or None,
            )
    return tuple(kernels.values())


def _bytes_of(kind: str, text: str) -> int:
    return sum(int(size) for size in re.findall(rf"(\d+) bytes {kind}", text))


def demangled(kernels: Sequence[KernelResources], folder: str) -> tuple[KernelResources, ...]:
    """Kernels by their C++ names as they are written, without types of arguments.

    Args:
        kernels: With mangled names, which stay where there is no `c++filt`.
        folder: A folder to run it in.
    """
    if not kernels or shutil.which("c++filt") is None:
        return tuple(kernels)
    finished = run_confined(
        ["c++filt", "--no-params", "--", *(kernel.name for kernel in kernels)],
        cwd=folder,
        readable=[folder],
        wall_seconds=10.0,
    )
    names = finished.stdout.splitlines()
    if len(names) != len(kernels):
        return tuple(kernels)
    return tuple(
        dataclasses.replace(kernel, name=name) for kernel, name in zip(kernels, names, strict=True)
    )


def _run(
    command: Sequence[str],
    folder: str,
    nvcc: str,
    include_dirs: Sequence[str],
    timeout: float,
    protection: str,
) -> Finished:
    toolkit = os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
    return run_confined(
        command,
        cwd=folder,
        readable=(toolkit, *include_dirs),
        writable=(folder,),
        wall_seconds=timeout,
        cpu_seconds=int(timeout) + 1,
        memory_bytes=_MEMORY_BYTES,
        file_bytes=_FILE_BYTES,
        env={"LC_ALL": "C"},
        protection=protection,
    )
