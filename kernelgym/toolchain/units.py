"""A request's translation units, and the names that compilers know its texts by."""

from __future__ import annotations

import bisect
import dataclasses
import re
from pathlib import Path

from kernelgym.toolchain.build import BuildRequest, SourceFile
from kernelgym.toolchain.sourcemap import Place, SourceMap
from kernelgym.toolchain.translation import translation_units

__all__ = [
    "TORCH_HEADERS",
    "flat_name",
    "is_cuda",
    "origin",
    "source_texts",
    "units_of",
    "written_at",
]

TORCH_HEADERS = Path(__file__).parent / "include" / "torch"
"""The stand-in for torch's C++ headers."""

_LINE_DIRECTIVE = re.compile(
    r'^[ \t]*#[ \t]*(?:line[ \t]+)?(\d+)(?:[ \t]+"([^"]*)")?', re.MULTILINE
)


def units_of(request: BuildRequest) -> tuple[SourceFile, ...]:
    """A request's translation units, whose `#line` directives name texts as `source_texts` does.

    Raises:
        UsageError: A path of `request.sources` is not one of the workspace's files.
    """
    # Shown no file that holds a text, the translation names texts by argument and index.
    files = tuple(file for file in request.files if file.path in request.sources)
    return translation_units(dataclasses.replace(request, files=files))


def is_cuda(path: str) -> bool:
    """Whether a file is one for the device compiler."""
    return path.endswith((".cu", ".cuh"))


def flat_name(path: str) -> str:
    """A plain file name that no other path of the workspace becomes."""
    return path.replace("_", "__").replace("/", "_s")


def source_texts(request: BuildRequest) -> dict[str, str]:
    """A request's texts by the names that compilers, and binaries at run time, know them by.

    Units give these names in `#line` directives, never lines of `model_new.py`: an edit that only
    moves a kernel's string in its file changes no binary.
    """
    inline = {"cpp_sources": request.cpp_sources, "cuda_sources": request.cuda_sources}
    return {
        f"{name}[{index}]": text
        for name, texts in inline.items()
        for index, text in enumerate(texts)
    }


def written_at(request: BuildRequest, source_map: SourceMap, name: str, line: int) -> Place | None:
    """Where in the workspace a compiled line was written.

    Args:
        request: What was built.
        source_map: The map of its workspace.
        name: What the compiler knew the text as: see `source_texts`, or a file's path.
        line: 1-based.
    """
    texts = source_texts(request)
    if name in texts:
        return source_map.locate(texts[name], line)
    if source_map.has_file(name):
        return Place(name, line, 0)
    return None


def origin(unit: str, line: int) -> tuple[str, int]:
    """The source's name and line that a unit's `#line` directives give one of its lines.

    Returns:
        `("", line)` before the first directive.
    """
    directives = list(_LINE_DIRECTIVE.finditer(unit))
    starts = [unit.count("\n", 0, match.start()) + 1 for match in directives]
    index = bisect.bisect_left(starts, line) - 1
    if index < 0:
        return "", line
    name = next((match[2] for match in directives[index::-1] if match[2] is not None), "")
    return name, line - starts[index] - 1 + int(directives[index][1])
