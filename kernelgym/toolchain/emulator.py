"""Builds the emulator's runtime once, and says how to compile a candidate against it.

Nothing of a candidate's is run here: the methods that concern candidates return command lines.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import enum
import hashlib
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import filelock

from kernelgym.errors import ToolchainFault
from kernelgym.toolchain.nvcc_flags import translate_flags

__all__ = ["EmulatorKit", "EmulatorToolchain", "Variant"]

_PACKAGE = Path(__file__).parent
_HEADERS = _PACKAGE / "include" / "cuda"
_RUNTIME = _PACKAGE / "runtime"
_PREFIX = "kgemu_prefix.h"
# A kernel that is not instrumented is not counted. However a macro makes the word, the compiler
# sees it; the headers of the system do without.
_FORBIDDEN = "no_sanitize __no_sanitize__ no_sanitize_thread __no_sanitize_thread__"
_OLDEST_GCC = 11

# -fno-strict-aliasing: CUDA programs read floats through float4*, and nvcc lets them.
# -ffp-contract=off: the same digits on every host.
# -fstack-clash-protection: a thread's stack that overflows by a large array must hit its guard.
# -fno-gnu-unique: two variants in one process must not share the static __shared__ variables of
# their templates.
_COMMON = [
    "-std=c++17",
    "-fPIC",
    "-pipe",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-gnu-unique",
    "-fstack-clash-protection",
    "-fdiagnostics-color=never",
    "-fmax-errors=20",
    "-Wno-attributes",
    "-Wno-deprecated",
    "-Wno-class-memaccess",
]


class Variant(str, enum.Enum):
    """How a candidate is compiled: `FAST` runs at full speed, `CHECKED` is watched."""

    FAST = "fast"
    CHECKED = "checked"

    def __str__(self) -> str:
        """The value, so that `f"{variant}"` reads the same on every Python."""
        return self.value


# In the checked variant the runtime is called before each access. Scalar replacement and forward
# propagation would split the copy of a float4 into four accesses before these calls are placed.
_VARIANT_FLAGS = {
    Variant.FAST: ("-O2", "-g0"),
    Variant.CHECKED: (
        "-O1", "-g1", "-finline-small-functions", "-fsanitize=thread",
        "--param", "tsan-instrument-func-entry-exit=0", "-fno-tree-sra", "-fno-tree-forwprop",
    ),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class EmulatorKit:
    """An emulator ready for use: paths, and the command lines to compile against it.

    Attributes:
        directory: Everything below; read-only from now on.
        compiler: The g++ it was made with, and that must compile candidates.
        key: Content key of the kit; belongs into the key of every build made with it.
    """

    directory: Path
    compiler: str
    key: str

    @property
    def runtime(self) -> Path:
        """The runtime library, `libkgemu.so`."""
        return self.directory / "libkgemu.so"

    @property
    def include_dirs(self) -> tuple[Path, ...]:
        """The emulation headers first, then those that the toolchain was given."""
        return tuple(sorted((self.directory / "include").iterdir()))

    def compile_command(
        self,
        source: Path | str,
        output: Path | str,
        variant: Variant,
        *,
        include_dirs: Sequence[Path | str] = (),
        flags: Sequence[str] = (),
        cuda: bool = True,
    ) -> list[str]:
        """The command that compiles one translation unit.

        Args:
            source: A rewritten CUDA source (see `kernelgym.toolchain.rewrite`), or C++.
            output: The object file.
            variant: Which variant.
            include_dirs: Directories searched before the emulator's.
            flags: nvcc's or g++'s; translated.
            cuda: Whether it is CUDA: `cuda_runtime.h` is included by itself then, as nvcc does.
        """
        return [*self._compile(variant, include_dirs, flags, cuda), "-c", "-xc++", str(source),
                "-o", str(output)]  # fmt: skip

    def link_command(
        self, objects: Sequence[Path | str], output: Path | str, *, flags: Sequence[str] = ()
    ) -> list[str]:
        """The command that links objects of one variant into an extension module.

        CUDA's own libraries in `flags` are left out: the runtime stands for them.
        """
        kept = [
            flag for flag in flags if not re.fullmatch(r"-l(cuda|cudart|cublas|culibos)\S*", flag)
        ]
        return [self.compiler, "-shared", "-fPIC", "-Wl,-O1", *map(str, objects), *kept,
                *self._link(), "-o", str(output)]  # fmt: skip

    def compile_commands(
        self,
        sources: Sequence[Path | str],
        output: Path | str,
        variant: Variant,
        *,
        include_dirs: Sequence[Path | str] = (),
        flags: Sequence[str] = (),
        link_flags: Sequence[str] = (),
        cuda: bool = True,
    ) -> list[list[str]]:
        """The commands that make an extension module: one for each source, then the link.

        All but the last may run side by side. Objects lie beside `output`. (Compiling and linking
        in one command would link libtsan to the checked variant.)
        """
        objects = [f"{output}.{index}.o" for index in range(len(sources))]
        commands = [
            self.compile_command(
                source, object_, variant, include_dirs=include_dirs, flags=flags, cuda=cuda
            )
            for source, object_ in zip(sources, objects, strict=True)
        ]
        return [*commands, self.link_command(objects, output, flags=link_flags)]

    def _compile(
        self, variant: Variant, include_dirs: Sequence[Path | str], flags: Sequence[str], cuda: bool
    ) -> list[str]:
        given = translate_flags(flags).flags
        command = [self.compiler, *_COMMON, *_VARIANT_FLAGS[variant], *given]
        command += [f"-I{directory}" for directory in (*include_dirs, *self.include_dirs)]
        if cuda:
            command += ["-include", str(self.directory / variant.value / _PREFIX)]
        else:
            command.append("-DKGEMU_HOST_ONLY")
        return command

    def _link(self) -> list[str]:
        return [f"-L{self.directory}", "-lkgemu", f"-Wl,-rpath,{self.directory}"]


@dataclasses.dataclass(frozen=True)
class EmulatorToolchain:
    """What an emulator is made of.

    Attributes:
        cache: Folder that keeps finished kits, one subfolder for each key.
        compiler: A g++ of version 11 or later.
        include_dirs: Further header directories, copied into the kit, such as a stand-in for
            torch's headers.
        prefix_headers: Headers that every CUDA translation unit includes, precompiled.
        defines: Macros defined for them, as `"NAME"` or `"NAME=value"`.
    """

    cache: Path
    compiler: str = "g++"
    include_dirs: tuple[Path, ...] = ()
    prefix_headers: tuple[str, ...] = ("cuda_runtime.h", "cuda_fp16.h", "cuda_bf16.h")
    defines: tuple[str, ...] = ()

    def kit(self) -> EmulatorKit:
        """The kit, built if this cache does not have it (some seconds, once).

        Several processes may ask at once; one of them builds.

        Raises:
            ToolchainFault: There is no such g++, it is too old, or it cannot build the runtime.
        """
        version = self._version()
        key = self._key(version)
        directory = self.cache / f"emulator-{key[:24]}"
        complete = directory / "complete"
        if not complete.exists():
            self.cache.mkdir(parents=True, exist_ok=True)
            with filelock.FileLock(self.cache / f"emulator-{key[:24]}.lock"):
                if not complete.exists():  # another process may have been faster
                    shutil.rmtree(directory, ignore_errors=True)
                    self._build(directory)
                    complete.touch()
        return EmulatorKit(directory=directory, compiler=self.compiler, key=key)

    def _version(self) -> str:
        try:
            result = subprocess.run(
                [self.compiler, "-dumpfullversion", "-dumpmachine"],
                capture_output=True, text=True, check=True, timeout=60,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            raise ToolchainFault(f"expected a working g++, got: {error}") from error
        version = result.stdout.strip()
        if int(version.split(".")[0]) < _OLDEST_GCC:
            raise ToolchainFault(f"expected g++ {_OLDEST_GCC} or later, got {version}")
        return version

    def _key(self, version: str) -> str:
        digest = hashlib.sha256()
        for part in (
            version, *_COMMON, *self.prefix_headers, *self.defines,
            *(flag for flags in _VARIANT_FLAGS.values() for flag in flags),
        ):  # fmt: skip
            digest.update(part.encode() + b"\0")
        for root in (_HEADERS, _RUNTIME, *self.include_dirs):
            for path in _files(root):
                digest.update(path.relative_to(root).as_posix().encode() + b"\0")
                digest.update(hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()

    def _build(self, directory: Path) -> None:
        # Copies: the kit must not change with the package, and a precompiled header is bound to
        # the very files that it was made from.
        for index, root in enumerate((_HEADERS, *self.include_dirs)):
            shutil.copytree(root, directory / "include" / f"{index}-{root.name}")
        for variant in Variant:
            prefix = directory / variant.value / _PREFIX
            prefix.parent.mkdir()
            prefix.write_text(self._prefix())
        kit = EmulatorKit(directory=directory, compiler=self.compiler, key="")
        with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
            headers = [pool.submit(_run, _header_command(kit, variant)) for variant in Variant]
            objects = []
            compiled = []
            for source in sorted(_RUNTIME.glob("*.cpp")):
                object_ = directory / f"{source.stem}.o"
                objects.append(object_)
                compiled.append(pool.submit(_run, self._runtime_command(source, object_)))
            for future in (*compiled, *headers):
                future.result()
        _run(
            [self.compiler, "-shared", "-Wl,-soname,libkgemu.so", *map(str, objects), "-ldl",
             "-o", str(kit.runtime)]
        )  # fmt: skip
        for object_ in objects:
            object_.unlink()

    def _prefix(self) -> str:
        defines = [f"#define {define.replace('=', ' ', 1)}\n" for define in self.defines]
        includes = [f"#include <{header}>\n" for header in self.prefix_headers]
        return "".join([*defines, *includes, f"#pragma GCC poison {_FORBIDDEN}\n"])

    def _runtime_command(self, source: Path, output: Path) -> list[str]:
        return [self.compiler, "-std=c++17", "-O2", "-g1", "-fPIC", "-c", str(source),
                "-o", str(output)]  # fmt: skip


def _files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


def _header_command(kit: EmulatorKit, variant: Variant) -> list[str]:
    command = [kit.compiler, *_COMMON, *_VARIANT_FLAGS[variant]]
    command += [f"-I{directory}" for directory in kit.include_dirs]
    prefix = kit.directory / variant.value / _PREFIX
    return [*command, "-xc++-header", str(prefix), "-o", f"{prefix}.gch"]


def _run(command: Sequence[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise ToolchainFault(f"expected the emulator to build, got: {result.stderr[-4000:]}")
