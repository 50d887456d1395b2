"""What a GPU's machine code (SASS) is made of, as nvdisasm shows it.

These are counts of instructions as they stand in the binary, not as they run: a loop's body counts
once. They tell whether the compiler used tensor cores, 16-byte loads or local memory at all.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kernelgym.toolchain.build import BuildResult, KernelResources, SassSummary
from kernelgym.toolchain.cache import ContentCache
from kernelgym.toolchain.cuda import demangled, find_nvcc
from kernelgym.toolchain.sandbox import Finished, run_confined

__all__ = ["find_disassembler", "parse_sass", "summarise_build"]

_KERNEL = re.compile(r"\s*\.other\s+(?P<name>[^\s,]+),.*\bSTO_CUDA_ENTRY\b")
_LABEL = re.compile(r"\.text\.(?P<name>\S+):$")
_INSTRUCTION = re.compile(
    r"\s+/\*[0-9a-f]{4,}\*/\s+\{?\s*(?P<predicate>@!?U?P\w+)?\s*"
    r"(?P<opcode>[A-Z][A-Z0-9_]*)(?P<rest>[A-Z0-9_.]*)"
)
_WIDE = re.compile(r"\.(?:ENL2\.)?(?:128|256)\b")
_TENSOR = re.compile(r"(?:[A-Z]G?|UTC\w*)MMA")
_ASYNC = re.compile(r"LDGSTS|UBLKCP|UBLKRED|UTMA(?:LDG|STG|REDG)")
# The first that matches an opcode.
_CLASSES = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("tensor", _TENSOR.pattern),
        ("async copy", _ASYNC.pattern),
        ("global memory", r"LDG?|STG?|ATOMG?|REDG?"),
        ("shared memory", r"LDSM?|STSM?|ATOMS|STAS|REDAS"),
        ("local memory", r"LDL|STL"),
        ("constant", r"LDCU?|ULDC"),
        ("fp64", r"D(?:ADD|MUL|FMA|MNMX|SETP)"),
        ("fp16", r"H(?:ADD|MUL|FMA|MNMX|SETP?)2\w*"),
        ("fp32", r"U?F(?:ADD|MUL|FMA|MNMX|SET|SEL|CHK|SWZ)\w*"),
        ("special", r"MUFU"),
        ("conversion", r"U?(?:F2FP?|F2I|I2FP?|I2IP?|F2IP|FRND)"),
        ("control", r"BRXU?|BRA|JMP|JMXU?|CALL|RET|EXIT|BSSY|BSYNC|BREAK|BMOV|WARPSYNC|NANOSLEEP"),
        ("synchronisation", r"U?BAR|\w*MEMBAR|\w*DEPBAR|SYNCS|ERRBAR|CCTL\w*|FENCE|WARPGROUP\w*"),
        ("exchange", r"SHFL|VOTEU?|MATCH|C?REDUX"),
        ("integer", r"U?(?:I\w+|V\w+|LEA|LOP\w+|SH[FLR]|POPC|BREV|FLO|BMSK|SGXT|PRMT|PLOP3)"),
        ("move", r"U?(?:MOV\w*|SEL|S2U?R|CS2R|R2\w+|P2\w+)"),
    )
)
_CLASSES_SHOWN = 6
_MAX_KERNELS = 64
_DEVICE_CODE = b".nv_fatbin"
_OUTPUT_BYTES = 32 * 2**20
_FILE_BYTES = 64 * 2**20
_WALL_SECONDS = 10.0
_MEMORY_BYTES = 4 * 2**30
_FILE = "sass.json"


def find_disassembler(name: str = "nvdisasm") -> str | None:
    """The path of nvdisasm (or cuobjdump): beside nvcc, on the `PATH`, or of a Python package."""
    return next((path for path in _places(name) if os.access(path, os.X_OK)), None)


def _places(name: str) -> Iterator[str]:
    nvcc = find_nvcc()
    for folder in (os.path.dirname(os.path.realpath(nvcc)) if nvcc else "", "/usr/local/cuda/bin"):
        yield os.path.join(folder, name)
    yield from filter(None, [shutil.which(name)])
    for packages in map(Path, filter(None, sys.path)):
        yield from map(str, sorted(packages.glob(f"nvidia/cu*/bin/{name}"), reverse=True))


def parse_sass(text: str) -> tuple[SassSummary, ...]:
    """Summarises each kernel of what `nvdisasm -c` prints; names stay mangled."""
    kernels: dict[str, list[tuple[str, str]]] = {}
    code: list[tuple[str, str]] | None = None
    for line in text.splitlines():
        if match := _KERNEL.match(line):
            kernels[match["name"]] = []
        elif match := _LABEL.match(line):
            code = kernels.get(match["name"])
        # What pads a kernel's end, and what never runs, is not its own.
        elif (
            code is not None
            and (match := _INSTRUCTION.match(line))
            and match["opcode"] != "NOP"
            and match["predicate"] != "@!PT"
        ):
            code.append((match["opcode"], match["rest"]))
    return tuple(_summary(name, code) for name, code in kernels.items())


def summarise_build(
    build: BuildResult, cache: ContentCache, *, protection: str = "standard"
) -> tuple[SassSummary, ...]:
    """Summarises a build's kernels, or finds the summary in the cache.

    Machine code lies in the library, or beside it in files named `<module>.<unit>.cubin`.

    Args:
        build: Of a GPU toolchain.
        cache: Keeps summaries by the build's key.
        protection: How the tools, which read a binary made from foreign source, are confined.

    Returns:
        By kernel, names demangled, 64 at most; empty where the tools are not there or fail.

    Raises:
        SandboxFault: A tool could not be confined.
    """
    nvdisasm = find_disassembler()
    if nvdisasm is None or build.status != "ok":
        return ()
    key = hashlib.sha256(f"sass 1 {nvdisasm} {build.key}".encode()).hexdigest()
    entry = cache.get(key)
    if entry is not None:
        with contextlib.suppress(FileNotFoundError):  # Dropped meanwhile: made again.
            return msgspec.json.decode((entry / _FILE).read_bytes(), type=tuple[SassSummary, ...])
    deadline = time.monotonic() + _WALL_SECONDS
    found: list[SassSummary] = []
    with tempfile.TemporaryDirectory(prefix="kernelgym-") as folder:
        for image in _images(build, folder, deadline, protection):
            finished = _run([nvdisasm, "-c", image], folder, image, deadline, protection)
            if finished is None:
                return ()  # Not kept: it may work the next time.
            found += parse_sass(finished.stdout)
        named = _demangled(found[:_MAX_KERNELS], folder)
    if named:
        cache.publish(key, {_FILE: msgspec.json.encode(named)})
    return named


def _images(build: BuildResult, folder: str, deadline: float, protection: str) -> Iterator[str]:
    """Paths of a build's cubins; those inside a library are copied into the folder first."""
    for number, library in enumerate(map(Path, dict(build.libraries).values())):
        yield from map(str, sorted(library.parent.glob(f"{library.name.split('.')[0]}.*.cubin")))
        try:
            linked = _DEVICE_CODE in library.read_bytes()
        except FileNotFoundError:  # Dropped from the cache meanwhile.
            continue
        if not linked:
            continue
        cuobjdump = find_disassembler("cuobjdump")
        if cuobjdump is None:
            continue
        inside = os.path.join(folder, str(number))
        os.mkdir(inside)
        # Its own way of disassembling looks for nvdisasm through /proc, which is closed to it.
        command = [cuobjdump, "-xelf", "all", str(library)]
        if _run(command, inside, str(library), deadline, protection) is not None:
            yield from map(str, sorted(Path(inside).glob("*.cubin")))


def _run(
    command: Sequence[str], folder: str, image: str, deadline: float, protection: str
) -> Finished | None:
    """Runs a tool that reads one file and writes into a folder of its own; None if it failed."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        return None
    finished = run_confined(
        command,
        cwd=folder,
        readable=[os.path.dirname(os.path.realpath(command[0])), image],
        writable=[folder],
        wall_seconds=seconds,
        cpu_seconds=int(_WALL_SECONDS),
        memory_bytes=_MEMORY_BYTES,
        file_bytes=_FILE_BYTES,
        output_bytes=_OUTPUT_BYTES,
        protection=protection,
    )
    return finished if finished.returncode == 0 and not finished.truncated else None


def _summary(name: str, code: Sequence[tuple[str, str]]) -> SassSummary:
    def count(pattern: str, *, wide: bool = False) -> int:
        matches = re.compile(pattern).fullmatch
        return sum(
            bool(matches(opcode)) and (not wide or bool(_WIDE.search(rest)))
            for opcode, rest in code
        )

    mix = Counter(_class_of(opcode) for opcode, _ in code)
    return SassSummary(
        name=name,
        instructions=len(code),
        mix=tuple(mix.most_common(_CLASSES_SHOWN)),
        tensor=count(_TENSOR.pattern),
        global_loads=count("LDG|LD"),
        global_loads_16=count("LDG|LD", wide=True),
        global_stores=count("STG|ST"),
        global_stores_16=count("STG|ST", wide=True),
        local_loads=count("LDL"),
        local_stores=count("STL"),
        async_copies=count(_ASYNC.pattern),
    )


def _class_of(opcode: str) -> str:
    return next((name for name, pattern in _CLASSES if pattern.fullmatch(opcode)), "other")


def _demangled(found: Sequence[SassSummary], folder: str) -> tuple[SassSummary, ...]:
    named = demangled([KernelResources(one.name) for one in found], folder)
    return tuple(
        dataclasses.replace(one, name=resources.name)
        for one, resources in zip(found, named, strict=True)
    )
