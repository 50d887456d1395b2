"""How a request is to be compiled: what a toolchain decides and the build service carries out."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Protocol

from kernelgym.toolchain.build import BuildRequest
from kernelgym.toolchain.flags import Flags
from kernelgym.toolchain.nvrtc_client import DeviceSource

__all__ = ["SCRATCH", "DeviceStep", "Finding", "Plan", "Step", "Toolchain", "Variant"]

SCRATCH = "{scratch}"
"""See `Step.command`."""


@dataclasses.dataclass(frozen=True)
class Step:
    """One run of a compiler, in the folder of the workspace's copy.

    Attributes:
        command: Program and arguments. Written units lie in `../units`, results go to `../out`;
            `SCRATCH` in an argument becomes the absolute path of the folder above.
        tool: Whose messages it prints: `"g++"` or `"nvcc"`.
    """

    command: tuple[str, ...]
    tool: str = "g++"


@dataclasses.dataclass(frozen=True)
class DeviceStep:
    """One run of NVRTC.

    Attributes:
        asked: What to compile; paths begin with `SCRATCH`.
        cubin: Where the machine code goes; begins with `SCRATCH`.
        host: What the source's other half becomes, an object file or a module: it says which
            kernels are launched.
        target: The architecture, such as `"sm_90"`.
        tool: Whose messages it prints.
    """

    asked: DeviceSource
    cubin: str
    host: str
    target: str
    tool: str = "nvrtc"


@dataclasses.dataclass(frozen=True)
class Variant:
    """One extension module: compiled side by side, then linked.

    Attributes:
        name: `"fast"`, `"checked"`.
        compiles: Steps that do not depend on each other.
        link: The step that makes `library` from what they made; `None` where one of them does.
        library: The module's file name in `../out`.
        beside: Names of further files in `../out` that the module loads when it runs.
    """

    name: str
    compiles: tuple[Step | DeviceStep, ...]
    link: Step | None
    library: str
    beside: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Finding:
    """Something wrong that was found without a compiler.

    Attributes:
        status: `"unsupported"`, `"compile_error"`, or `"declined"`: another toolchain may do it.
        source: Name of the text it stands in, as `source_texts` has it, or `""`.
        line: 1-based line in that text, or 0.
        text: The message.
        tool: Who says so.
        code: A stable code, or `""`.
    """

    status: str
    source: str
    line: int
    text: str
    tool: str
    code: str = ""


@dataclasses.dataclass(frozen=True)
class Plan:
    """All that is needed to build.

    Attributes:
        units: Texts to write to `../units`, by plain file name.
        files: Texts that stand in for files of the workspace, by path.
        variants: The modules to make.
        findings: When there are any, nothing is compiled.
        readable: Folders that compilers may read, besides the system's and the scratch folder.
    """

    units: Mapping[str, str] = dataclasses.field(default_factory=dict)
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    variants: tuple[Variant, ...] = ()
    findings: tuple[Finding, ...] = ()
    readable: tuple[str, ...] = ()


class Toolchain(Protocol):
    """A way from sources to an extension module. Calls may come from several threads."""

    @property
    def path(self) -> str:
        """The way's name in `BuildResult.path`."""

    def identity(self) -> str:
        """All that results depend on apart from the request.

        Versions of compilers, of Python and torch, and of the toolchain's own headers and code.

        Raises:
            ToolchainFault: A compiler is missing or too old.
        """

    def plan(self, request: BuildRequest, flags: Flags, module: str) -> Plan:
        """Decides how to build the request as an extension module of the given name.

        Raises:
            ToolchainFault: The toolchain is broken.
        """
