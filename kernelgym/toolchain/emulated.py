"""The toolchain of the target `"emulator"`: CUDA rewritten to C++, compiled by g++."""

from __future__ import annotations

import hashlib
import os
import shutil
import sysconfig
import threading
from collections.abc import Collection, Sequence
from importlib import metadata
from pathlib import Path, PurePosixPath

from kernelgym.errors import ToolchainFault, UsageError
from kernelgym.toolchain.build import BuildRequest, SourceFile
from kernelgym.toolchain.emulator import EmulatorKit, EmulatorToolchain, Variant
from kernelgym.toolchain.flags import Flags
from kernelgym.toolchain.plan import SCRATCH, Finding, Plan, Step
from kernelgym.toolchain.plan import Variant as PlannedVariant
from kernelgym.toolchain.rewrite import rewrite
from kernelgym.toolchain.translation import translation_units
from kernelgym.toolchain.units import TORCH_HEADERS, flat_name, is_cuda, origin

__all__ = ["Emulated"]

_PACKAGE = Path(__file__).parent
# Parsing torch's header takes longer than all else in a small candidate.
_PRECOMPILED = ("cuda_runtime.h", "cuda_fp16.h", "cuda_bf16.h", "torch/extension.h")
_REWRITTEN_SUFFIXES = (".cu", ".cuh", ".h", ".hpp", ".inl", ".inc")
_MESSAGES = ("-fno-diagnostics-show-caret", "-fdiagnostics-column-unit=byte")


class Emulated:
    """Builds for the emulator, in the variants `"fast"` and `"checked"`.

    Args:
        cache: Folder for the emulator's own runtime and precompiled headers.
    """

    path = "emulator"

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._lock = threading.Lock()
        self._kit: EmulatorKit | None = None

    def kit(self) -> EmulatorKit:
        """The emulator, built when this cache does not have it (some seconds, once).

        Raises:
            ToolchainFault: g++ is missing, too old, or cannot build it; or this Python is
                free-threaded.
        """
        with self._lock:
            if self._kit is None:
                if shutil.which("g++") is None:
                    raise ToolchainFault(
                        "expected g++ 11 or later on the PATH, got none; "
                        "sudo apt-get install g++ brings it"
                    )
                if sysconfig.get_config_var("Py_GIL_DISABLED"):
                    # Objects are laid out otherwise there: extension modules would crash.
                    raise ToolchainFault("expected a Python with the GIL, got a free-threaded one")
                self._kit = EmulatorToolchain(
                    cache=self._cache, include_dirs=(TORCH_HEADERS,), prefix_headers=_PRECOMPILED
                ).kit()
            return self._kit

    def identity(self) -> str:
        """See `Toolchain.identity`."""
        code = hashlib.sha256()
        for path in sorted(_PACKAGE.glob("*.py")):
            code.update(path.read_bytes())
        return f"{self.kit().key} torch {metadata.version('torch')} {code.hexdigest()}"

    def plan(self, request: BuildRequest, flags: Flags, module: str) -> Plan:
        """See `Toolchain.plan`."""
        kit = self.kit()
        try:
            units = translation_units(request)
        except UsageError as error:
            return Plan(findings=(Finding("compile_error", "", 0, str(error), "kernelgym"),))
        findings: list[Finding] = []
        texts: dict[str, str] = {}
        for unit in units:
            texts[flat_name(unit.path)] = _rewritten(unit, findings, unit_of=True)
        files = {
            file.path: _rewritten(file, findings, unit_of=False)
            for file in request.files
            if file.path.endswith(_REWRITTEN_SUFFIXES)
        }
        if findings:
            return Plan(findings=tuple(findings))
        only_declares = not request.sources and not any("{" in t for t in request.cpp_sources)
        watched = {unit.path for unit in units if is_cuda(unit.path) or not only_declares}
        return Plan(
            units=texts,
            files=files,
            variants=tuple(
                _planned(kit, variant, [unit.path for unit in units], watched, flags, module)
                for variant in Variant
            ),
            readable=(str(kit.directory),),
        )


def _rewritten(file: SourceFile, findings: list[Finding], *, unit_of: bool) -> str:
    result = rewrite(file.text)
    for unsupported in result.unsupported:
        source, line = file.path, unsupported.line
        if unit_of:
            source, line = origin(file.text, line)
        text = f"the emulator cannot run {unsupported.construct}"
        findings.append(Finding("unsupported", source, line, text, "emulator", "unsupported"))
    return result.text


def _planned(
    kit: EmulatorKit,
    variant: Variant,
    paths: Sequence[str],
    watched: Collection[str],
    flags: Flags,
    module: str,
) -> PlannedVariant:
    compiles = []
    objects = []
    # A unit lies in another folder than the file that it was made from: quoted includes are
    # looked for in that file's folder.
    folders = [
        ".",
        *flags.include_dirs,
        *dict.fromkeys(str(PurePosixPath(p).parent) for p in paths),
    ]
    for path in paths:
        cuda = is_cuda(path)
        # Bindings alone touch no tensor: both variants share one object of them. They are compiled
        # like CUDA code nevertheless, for the sake of the precompiled headers.
        compiled_as = variant if path in watched else Variant.FAST
        objects.append(f"../out/{compiled_as}-{flat_name(path)}.o")
        command = kit.compile_command(
            f"../units/{flat_name(path)}",
            objects[-1],
            compiled_as,
            include_dirs=tuple(dict.fromkeys(folders)),
            flags=flags.device if cuda else flags.host,
        )
        defines = [f"-DTORCH_EXTENSION_NAME={module}", "-DTORCH_API_INCLUDE_EXTENSION_H"]
        # Places in binaries must not depend on where they were compiled.
        place = f"-fdebug-prefix-map={SCRATCH}/work=."
        compiles.append(Step((*command, *_MESSAGES, place, *defines)))
    library = f"{module}.{variant}.so"
    link = kit.link_command(objects, os.path.join("../out", library), flags=flags.link)
    return PlannedVariant(str(variant), tuple(compiles), Step(tuple(link)), library)
