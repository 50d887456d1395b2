"""What is asked of the build service, and what it answers. Records only."""

from __future__ import annotations

import dataclasses

__all__ = [
    "BuildRequest",
    "BuildResult",
    "Diagnostic",
    "KernelResources",
    "SassSummary",
    "SourceFile",
    "ToolCall",
    "ToolOutcome",
]


@dataclasses.dataclass(frozen=True)
class Diagnostic:
    """One message about a place in the workspace.

    Attributes:
        file: Path inside the workspace, or `""` when the message belongs to no file.
        line: 1-based, or 0 when unknown.
        column: 1-based, or 0 when unknown.
        severity: `"error"`, `"warning"` or `"note"`.
        text: The message, one line, without temporary paths.
        excerpt: The line of source with a caret under the column, or `""`.
        tool: Who says so: `"g++"`, `"nvcc"`, `"nvrtc"`, `"python"`, `"screen"`, `"emulator"`.
        code: A stable code where there is one (`"race.shared"`, `"memory.out_of_bounds"`), or `""`.
    """

    file: str
    line: int
    column: int
    severity: str
    text: str
    excerpt: str = ""
    tool: str = ""
    code: str = ""


@dataclasses.dataclass(frozen=True)
class KernelResources:
    """What the compiler gave one kernel. Unknown values are `None`."""

    name: str
    registers: int | None = None
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None
    shared_bytes: int | None = None
    local_bytes: int | None = None
    constant_bytes: int | None = None


@dataclasses.dataclass(frozen=True)
class SassSummary:
    """What one kernel's machine code is made of: instructions as they stand, loops counted once.

    Attributes:
        name: The kernel.
        instructions: All of them, without what pads its end.
        mix: The most frequent classes (`"fp32"`, `"global memory"`, …) with their counts.
        tensor: Products on tensor cores.
        global_loads: Loads from global memory.
        global_loads_16: Those of 16 bytes a thread, or more.
        global_stores: Stores to global memory.
        global_stores_16: Those of 16 bytes a thread, or more.
        local_loads: Loads from local memory: spilled registers, or arrays indexed at run time.
        local_stores: Stores to it.
        async_copies: Copies from global to shared memory (or back) that bypass registers.
    """

    name: str
    instructions: int
    mix: tuple[tuple[str, int], ...] = ()
    tensor: int = 0
    global_loads: int = 0
    global_loads_16: int = 0
    global_stores: int = 0
    global_stores_16: int = 0
    local_loads: int = 0
    local_stores: int = 0
    async_copies: int = 0


@dataclasses.dataclass(frozen=True)
class SourceFile:
    """A file of the workspace: its path in it (POSIX, relative) and its text."""

    path: str
    text: str


@dataclasses.dataclass(frozen=True)
class ToolCall:
    """One run of a compiler's tool, as a Python package asks for it (Triton, PyCUDA).

    Attributes:
        tool: `"ptxas"`, `"ptxas-blackwell"`, `"cc"` or `"nvcc"`.
        arguments: Its arguments; files are meant by their plain names.
        inputs: (plain name, content) of the files that it reads.
        outputs: Plain names of the files that it is to write.
    """

    tool: str
    arguments: tuple[str, ...]
    inputs: tuple[tuple[str, bytes], ...] = ()
    outputs: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class ToolOutcome:
    """How a `ToolCall` ended.

    Attributes:
        returncode: Its exit status.
        stdout: What it wrote there.
        stderr: Likewise.
        outputs: (plain name, content) of the files that it wrote.
    """

    returncode: int
    stdout: str = ""
    stderr: str = ""
    outputs: tuple[tuple[str, bytes], ...] = ()


@dataclasses.dataclass(frozen=True)
class BuildRequest:
    """One Python extension module to build, as `load_inline` or `load` would be asked for it.

    Attributes:
        name: The name the candidate gave; for display only (module names derive from the key).
        target: `"emulator"`, or a GPU architecture such as `"sm_90"`.
        cpp_sources: C++ texts (`load_inline`'s `cpp_sources`).
        cuda_sources: CUDA texts (`load_inline`'s `cuda_sources`).
        functions: (function name, docstring) pairs to bind, as with `load_inline(functions=...)`.
        sources: Paths of workspace files to compile (`load`'s `sources`).
        files: Every file of the workspace: what sources may include, and where diagnostics map to.
        extra_cflags: Flags for the host compiler.
        extra_cuda_cflags: Flags for the device compiler.
        extra_ldflags: Flags for the linker.
        no_implicit_headers: Whether the inline sources bring all their headers themselves.
        tool: Run this tool instead, and build no extension module.
    """

    name: str
    target: str
    cpp_sources: tuple[str, ...] = ()
    cuda_sources: tuple[str, ...] = ()
    functions: tuple[tuple[str, str], ...] = ()
    sources: tuple[str, ...] = ()
    files: tuple[SourceFile, ...] = ()
    extra_cflags: tuple[str, ...] = ()
    extra_cuda_cflags: tuple[str, ...] = ()
    extra_ldflags: tuple[str, ...] = ()
    no_implicit_headers: bool = False
    tool: ToolCall | None = None


@dataclasses.dataclass(frozen=True)
class BuildResult:
    """What came of a `BuildRequest`. Failed builds are results too, and are cached like others.

    Attributes:
        key: Content key; the module's name is `"kg_" + key[:24]`.
        status: `"ok"`, `"compile_error"`, `"timeout"` or `"unsupported"` (emulator only).
        path: The way taken: `"emulator"`, `"fast"`, `"torch"` or `"nvrtc"`; a tool's name for a
            `ToolCall`.
        why: Why that way, when it was not the first choice.
        libraries: (variant, absolute path of the extension module) pairs. The emulator builds two
            variants: `"fast"`, and `"checked"` (instrumented); a GPU one: `"fast"`.
        diagnostics: Compiler messages mapped to the workspace.
        kernels: Resources per kernel, where known.
        cached: Whether it came out of the cache.
        seconds: Wall-clock seconds it took.
        outcome: How the tool ended, for a `ToolCall`.
    """

    key: str
    status: str
    path: str
    why: str = ""
    libraries: tuple[tuple[str, str], ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    kernels: tuple[KernelResources, ...] = ()
    cached: bool = False
    seconds: float = 0.0
    outcome: ToolOutcome | None = None

    def library(self, variant: str) -> str:
        """The path of one variant's extension module.

        Raises:
            KeyError: That variant was not built.
        """
        return dict(self.libraries)[variant]
