"""Which compiler flags a candidate may ask for.

A flag can name a plugin, another compiler, an output or a file to read, so that only flags known to
be harmless pass; any other is an error that names it.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Iterator, Sequence

from kernelgym.toolchain.build import BuildRequest, Diagnostic

__all__ = ["Flags", "screen_flags"]

_PATH_IN_WORKSPACE = r"(?!/)(?!.*\.\.)[\w./-]*"
_MACRO = r"[A-Za-z_]\w*(?:\(\w*\))?(?:=.*)?"
_HOST = re.compile(
    rf"-O(?:[0-3sgz]|fast)?|-D{_MACRO}|-U\w+|-std=(?:c|gnu)\+\+\w+|-g[0-3]?"
    r"|-f(?:no-)?(?:fast-math|math-errno|finite-math-only|unsafe-math-optimizations|trapping-math"
    r"|associative-math|reciprocal-math|signed-zeros|rounding-math|unroll-loops|inline-functions"
    r"|omit-frame-pointer|strict-aliasing|tree-vectorize|openmp|exceptions|rtti|permissive"
    r"|visibility-inlines-hidden)|-ffp-contract=\w+|-fvisibility=\w+|-f(?:PIC|pic|PIE|pie)"
    r"|-m(?:arch|tune|cpu)=[\w.+-]+|-m(?:no-)?(?:avx|sse|fma|bmi|f16c|popcnt)[\w.]*"
    r"|-W(?![alp],)[\w+=#-]*|-w|-pthread|-pedantic|-fdiagnostics-color(?:=\w+)?"
)
_DEVICE = re.compile(
    rf"-O[0-4]|-D{_MACRO}|-U\w+|--?std=c\+\+\w+|-g|-w|--?lineinfo|--?use_fast_math|--?restrict"
    r"|--?arch=\w+|--?gpu-architecture=\w+|--?gencode=[\w=,\[\]\"']+|--?generate-code=[\w=,\[\]\"']+"
    r"|--?gpu-code=\w+|--?code=\w+|--?maxrregcount=\d+|--?threads=\d+"
    r"|--?(?:fmad|ftz|prec-div|prec-sqrt)=(?:true|false)"
    r"|--?expt-(?:relaxed-constexpr|extended-lambda)|--?extended-lambda"
    r"|--?default-stream=[\w-]+|--?diag-suppress=[\w,-]+|--?source-in-ptx|--?resource-usage"
)
_ASSEMBLER = re.compile(
    r"-v|--verbose|-O[0-4]|--opt-level=[0-4]|--?(?:warn-[\w-]+|allow-expensive-optimizations=\w+)"
    r"|-(?:dlcm|dscm)=\w+|--?(?:def-load-cache|def-store-cache)=\w+|--?maxrregcount=\d+"
)
_LINK = re.compile(
    r"-l(?:cublas|cublasLt|cudart|cuda|cudnn|curand|cufft|nvrtc|m|pthread|rt|dl|stdc\+\+|gomp"
    r"|c10|c10_cuda|torch|torch_cpu|torch_cuda|torch_python)|-O[0-3]|-s|-pthread|-fopenmp|-g"
)
# Folders of headers and libraries that are found anyway; candidates name them out of habit.
_USUAL_FOLDER = re.compile(r"-[IL](?:/usr/(?:local/)?(?:cuda[\w.-]*/)?(?:include|lib|lib64)|\.)/?")
_TWO_WORDS = re.compile(
    r"-[DUILlOt]|--?(?:std|arch|gpu-architecture|gencode|generate-code|code|gpu-code|maxrregcount"
    r"|threads|diag-suppress|default-stream)|-X(?:ptxas|compiler|nvlink|linker)"
    r"|--(?:ptxas|compiler)-options"
)
_NESTED = {
    "-Xcompiler": _HOST,
    "--compiler-options": _HOST,
    "-Xptxas": _ASSEMBLER,
    "--ptxas-options": _ASSEMBLER,
}


@dataclasses.dataclass(frozen=True)
class Flags:
    """A request's flags, each one word, and what is wrong with others.

    Attributes:
        host: For the host compiler.
        device: For nvcc.
        link: For the linker.
        include_dirs: Folders inside the workspace to search for headers.
        refused: One error for each flag that may not be used.
    """

    host: tuple[str, ...]
    device: tuple[str, ...]
    link: tuple[str, ...]
    include_dirs: tuple[str, ...]
    refused: tuple[Diagnostic, ...]


def screen_flags(request: BuildRequest) -> Flags:
    """Splits a request's flags into words, as a shell does, and keeps those that are allowed."""
    refused: list[Diagnostic] = []
    folders: list[str] = []
    kept = [
        tuple(_screen(texts, allowed, option, folders, refused))
        for texts, allowed, option in (
            (request.extra_cflags, _HOST, "extra_cflags"),
            (request.extra_cuda_cflags, _DEVICE, "extra_cuda_cflags"),
            (request.extra_ldflags, _LINK, "extra_ldflags"),
        )
    ]
    return Flags(kept[0], kept[1], kept[2], tuple(folders), tuple(refused))


def _screen(
    texts: Sequence[str],
    allowed: re.Pattern[str],
    option: str,
    folders: list[str],
    refused: list[Diagnostic],
) -> Iterator[str]:
    for flag in _joined(texts):
        if _USUAL_FOLDER.fullmatch(flag):
            continue
        if flag.startswith("-I") and re.fullmatch(_PATH_IN_WORKSPACE, flag[2:]):
            folders.append(flag[2:])
        elif "\0" not in flag and "\n" not in flag and _is_allowed(flag, allowed):
            yield flag
        else:
            text = f"{option}: the flag {flag!r} is not allowed"
            refused.append(Diagnostic("", 0, 0, "error", text, code="build.flag"))


def _joined(texts: Sequence[str]) -> Iterator[str]:
    """Words, with `-D NAME` made one word and `-arch sm_90` made `-arch=sm_90`."""
    words: list[str] = []
    for text in texts:
        try:
            words += shlex.split(text)
        except ValueError:
            words.append(text)  # An open quote: refused as it stands.
    pending = ""
    for word in words:
        if pending:
            yield pending + ("" if len(pending) == 2 else "=") + word
            pending = ""
        elif _TWO_WORDS.fullmatch(word):
            pending = word
        else:
            yield word
    if pending:
        yield pending


def _is_allowed(flag: str, allowed: re.Pattern[str]) -> bool:
    name, _, value = flag.partition("=")
    if allowed is _DEVICE and name in _NESTED and value:
        return all(_NESTED[name].fullmatch(word) for word in value.split(","))
    return allowed.fullmatch(flag) is not None
