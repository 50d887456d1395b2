"""What is judged: the task and the files, in any of the forms that callers have them in."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from kernelgym.errors import UsageError
from kernelgym.tasks import Task, get, load_file
from kernelgym.toolchain.build import SourceFile

__all__ = ["find_task", "source_hash", "workspace_files"]


def find_task(task: Task | str) -> Task:
    """A task by id or path; a `Task` is returned as it is.

    Raises:
        UsageError: There is none.
    """
    if isinstance(task, Task):
        return task
    return load_file(task) if task.endswith(".py") else get(task)


def workspace_files(workspace: Any) -> tuple[SourceFile, ...]:
    """The files of anything that `Judge.evaluate` accepts as a workspace, in order of path.

    Raises:
        UsageError: It is something else, or a path leaves the workspace.
    """
    if isinstance(workspace, str):
        workspace = {"model_new.py": workspace}
    files = getattr(workspace, "files", workspace)
    if not isinstance(files, Mapping):
        raise UsageError(
            "workspace: expected a Workspace, a mapping from path to text, or the text of "
            f"model_new.py, got {type(workspace).__name__}"
        )
    for path, text in files.items():
        parts = path.split("/") if isinstance(path, str) else []
        if not isinstance(text, str) or not parts or any(p in ("", ".", "..") for p in parts):
            raise UsageError(f"workspace: expected relative paths and texts, got {path!r}")
    return tuple(SourceFile(path, files[path]) for path in sorted(files))


def source_hash(files: Sequence[SourceFile]) -> str:
    """SHA-256 over paths and texts, hexadecimal."""
    digest = hashlib.sha256()
    for file in files:
        for part in (file.path, file.text):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()
