"""What the build service asks of a request before it builds: is it sound, and is it known already?"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from pathlib import PurePosixPath

import msgspec

from kernelgym.toolchain.build import BuildRequest, Diagnostic, SourceFile

__all__ = ["compilable_files", "refusals", "request_key"]

_FORMAT = 1
_MAX_SOURCE_CHARACTERS = 5 * 2**20
_MAX_INLINE_CHARACTERS = 2**20
_MAX_PATH = 200
# No absolute path, nothing that is taken for a flag or ends a #line directive's string.
_PLAIN_PATH = re.compile(r"(?![/-])[^\x00-\x1f\x7f\ud800-\udfff\"\\]+")


def request_key(request: BuildRequest, identity: str) -> str:
    """Digest of all that the result depends on: not the display name, nor Python files."""
    relevant = dataclasses.replace(
        request,
        name="",
        files=tuple(sorted(compilable_files(request), key=lambda file: file.path)),
    )
    content = msgspec.json.encode([_FORMAT, identity, msgspec.to_builtins(relevant)])
    return hashlib.sha256(content).hexdigest()


def compilable_files(request: BuildRequest) -> list[SourceFile]:
    """Files that compilers may see: all but Python."""
    return [file for file in request.files if not file.path.endswith(".py")]


def refusals(request: BuildRequest) -> tuple[Diagnostic, ...]:
    """Errors for paths that are not plain ones inside the workspace, and for too much text."""
    paths = [file.path for file in request.files]
    folders = {str(parent) for path in paths for parent in PurePosixPath(path).parents}
    wrong = [
        path
        for path in dict.fromkeys((*paths, *request.sources))
        if not _PLAIN_PATH.fullmatch(path)
        or str(PurePosixPath(path)) != path
        or ".." in PurePosixPath(path).parts
        or path in folders
        or len(path) > _MAX_PATH
    ]
    found = [
        Diagnostic("", 0, 0, "error", f"expected a path inside the workspace, got {path!r}")
        for path in wrong
    ]
    texts = (*request.cpp_sources, *request.cuda_sources, *(file.text for file in request.files))
    inline = sum(map(len, (*request.cpp_sources, *request.cuda_sources)))
    if inline > _MAX_INLINE_CHARACTERS:
        text = f"expected at most {_MAX_INLINE_CHARACTERS} characters of inline source"
        found.append(Diagnostic("", 0, 0, "error", text))
    if sum(map(len, texts)) > _MAX_SOURCE_CHARACTERS:
        text = f"expected at most {_MAX_SOURCE_CHARACTERS} characters of source"
        found.append(Diagnostic("", 0, 0, "error", text))
    return tuple(found)
