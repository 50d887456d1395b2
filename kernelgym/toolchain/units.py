"""Names: of translation units' files, and of the texts that they are made from."""

from __future__ import annotations

import bisect
import re
from pathlib import Path

from kernelgym.toolchain.build import BuildRequest

__all__ = ["TORCH_HEADERS", "flat_name", "is_cuda", "origin", "source_texts"]

TORCH_HEADERS = Path(__file__).parent / "include" / "torch"
"""The stand-in for torch's C++ headers."""

_LINE_DIRECTIVE = re.compile(
    r'^[ \t]*#[ \t]*(?:line[ \t]+)?(\d+)(?:[ \t]+"([^"]*)")?', re.MULTILINE
)


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
