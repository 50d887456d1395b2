"""Translates nvcc's command-line flags to what g++ understands."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

__all__ = ["TranslatedFlags", "translate_flags"]

# Flags of nvcc that take a value, as a separate word or after `=`, and have no counterpart.
_DROPPED_WITH_VALUE = frozenset(
    [
        "-arch",
        "--gpu-architecture",
        "-code",
        "--gpu-code",
        "-gencode",
        "--generate-code",
        "-Xptxas",
        "--ptxas-options",
        "-Xcudafe",
        "-Xnvlink",
        "-Xfatbin",
        "-maxrregcount",
        "--maxrregcount",
        "-ccbin",
        "--compiler-bindir",
        "-t",
        "--threads",
        "-ftz",
        "--ftz",
        "-prec-div",
        "--prec-div",
        "-prec-sqrt",
        "--prec-sqrt",
        "-fmad",
        "--fmad",
        "-rdc",
        "--relocatable-device-code",
        "-diag-suppress",
        "--diag-suppress",
        "-odir",
        "--output-directory",
        "-Xlinker",
        "--default-stream",
        "-default-stream",
        "-split-compile",
        "--split-compile",
        "-ewp",
        "-Werror",
        "--Werror",
    ]
)
_DROPPED = re.compile(
    r"-O[0-3sz]?|--optimize.*|-g|-G|--debug|--device-debug|-lineinfo|--generate-line-info"
    r"|--expt-relaxed-constexpr|-expt-relaxed-constexpr|--expt-extended-lambda"
    r"|-expt-extended-lambda|--extended-lambda|-extended-lambda|-dc|-c|-v|--verbose|-w|-W\S*"
    r"|--resource-usage|-res-usage|--keep|-keep|-m64|-m32|-fPIC|-shared|-restrict|--restrict"
    r"|-march=\S+|-mtune=\S+|-mcpu=\S+|-l\S+|-pthread|-fopenmp|-fvisibility=\S+|-forward-unknown\S*"
)
_FAST_MATH = re.compile(
    r"--?use_fast_math|-ffast-math|-Ofast|-funsafe-math-optimizations|-fassociative-math"
)
_STANDARD = re.compile(r"--?std[= ]?(?:c|gnu)\+\+(\w+)")
_HOST_FLAGS = ("-Xcompiler", "--compiler-options")


@dataclasses.dataclass(frozen=True)
class TranslatedFlags:
    """Flags for g++, and what a reader should know of those that were not kept.

    Attributes:
        flags: For g++.
        notes: One sentence for each flag that changes results on a GPU and not here.
    """

    flags: tuple[str, ...]
    notes: tuple[str, ...] = ()


def translate_flags(flags: Sequence[str]) -> TranslatedFlags:
    """Translates the flags of nvcc, or of a host compiler, for the emulator's compilation.

    Kept: macros (`-D`, `-U`), include directories (`-I`, `-isystem`), forced includes, the language
    standard (at least C++17), `-f…` flags that g++ may know. Optimisation, architecture and
    debugging are the emulator's own business. Fast mathematics stay IEEE and are noted.
    """
    kept: list[str] = []
    notes: list[str] = []
    queue = list(flags)
    while queue:
        flag = queue.pop(0)
        name, equals, value = flag.partition("=")
        if name in _HOST_FLAGS:
            words = value if equals else (queue.pop(0) if queue else "")
            queue[:0] = [word for word in words.strip("'\"").split(",") if word]
        elif _FAST_MATH.fullmatch(flag):
            notes.append(f"{flag}: computed in IEEE arithmetic here")
        elif name in _DROPPED_WITH_VALUE:
            if not equals and queue:
                queue.pop(0)
        elif flag in {"-D", "-U", "-I", "-isystem", "-include", "-std", "--std"}:
            queue[:0] = [_joined(flag, queue.pop(0))] if queue else []
        elif match := _STANDARD.fullmatch(flag):
            kept.append(f"-std=c++{match[1]}" if _at_least_17(match[1]) else "-std=c++17")
        elif flag.startswith("-isystem="):
            kept.append("-I" + value)
        elif flag.startswith("-include="):
            kept += ["-include", value]
        elif flag.startswith(("-D", "-U", "-I")):
            kept.append(flag)
        elif not _DROPPED.fullmatch(flag):
            if flag.startswith("-f"):
                kept.append(flag)
            else:
                notes.append(f"{flag}: without meaning here")
    return TranslatedFlags(tuple(kept), tuple(notes))


def _joined(flag: str, value: str) -> str:
    return flag + value if flag in {"-D", "-U", "-I"} else f"{flag}={value}"


def _at_least_17(standard: str) -> bool:
    return standard in {"17", "1z", "20", "2a", "23", "2b"}
