"""Workspaces on disk: a folder for a person or a coding agent, and candidates read from files."""

from __future__ import annotations

import dataclasses
import importlib.resources
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernelgym.errors import UsageError
from kernelgym.workspace import MAIN_FILE, REFERENCE_FILE, SUFFIXES, Workspace
from kernelgym.writing import writing

if TYPE_CHECKING:
    from kernelgym.tasks import Task

__all__ = ["Candidate", "create", "read_candidate"]


@dataclasses.dataclass(frozen=True)
class Candidate:
    """Files to judge, and where each lies on disk.

    Attributes:
        workspace: The files.
        places: Path in the workspace to path on disk.
    """

    workspace: Workspace
    places: Mapping[str, Path]


def read_candidate(paths: Sequence[str | os.PathLike[str]]) -> Candidate:
    """Reads what a caller names as a candidate.

    Args:
        paths: A folder that holds `model_new.py`; or one Python file of any name, which becomes
            `model_new.py`, with the files beside or below it that it needs. A file's path in the
            workspace is its path relative to the Python file.

    Raises:
        UsageError: Nothing there, no Python file or several without a `model_new.py` among them, a
            file outside of the Python file's folder, or what `Workspace` refuses.
    """
    if len(paths) == 1 and Path(paths[0]).is_dir():
        root = Path(paths[0])
        files = [path for path in sorted(root.rglob("*")) if _belongs(path, root)]
        main = root / MAIN_FILE
        if main not in files:
            raise UsageError(f"expected {MAIN_FILE} in {root}, got no such file")
    else:
        files = [Path(path) for path in paths]
        main = _main_file(files)
        root = main.parent
    places: dict[str, Path] = {}
    texts: dict[str, str] = {}
    for path in files:
        name = MAIN_FILE if path == main else _name_below(path, root)
        if name in places:
            raise UsageError(f"expected one file for {name}, got {places[name]} and {path}")
        places[name] = path
        texts[name] = _read(path)
    return Candidate(Workspace(texts), places)


def create(task: Task, folder: str | os.PathLike[str], size: str, server: str = "") -> Path:
    """Makes a folder to work in: reference, start workspace, instructions and a judge command.

    Args:
        task: The task to solve.
        folder: Where; made when missing.
        size: Which shapes: `"small"`, `"medium"` or `"full"`.
        server: Address of a `kernelgym serve` that the judge command asks; `""`: it judges itself.

    Returns:
        The folder.

    Raises:
        UsageError: The folder is not empty, is no folder, or cannot be written.
    """
    root = Path(folder)
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise UsageError(f"DIR: expected a new or an empty folder, got {root}")
    start = Workspace.initial(task, size)
    # A task from a file is found again by its path, from wherever the judge is called.
    reference = task.id if task.level else str(Path(task.path).resolve())
    options = f"--server {shlex.quote(server)}" if server else f"--size {size}"
    facts = {"task": task.id, "name": task.name, "options": options}
    facts |= {"reference": shlex.quote(reference), "python": shlex.quote(sys.executable)}
    texts = {
        REFERENCE_FILE: start.reference,
        "AGENTS.md": _template("workspace_agents.md", facts),
        "judge": _template("workspace_judge.sh", facts),
        **start.files,
    }
    with writing(folder):
        root.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (root / name).write_text(text, encoding="utf-8")
        (root / REFERENCE_FILE).chmod(0o444)
        (root / "judge").chmod(0o755)
    return root


def _belongs(path: Path, root: Path) -> bool:
    inside = path.relative_to(root).parts
    hidden = any(part.startswith((".", "__pycache__")) for part in inside)
    return path.is_file() and path.suffix in SUFFIXES and not hidden and inside != (REFERENCE_FILE,)


def _main_file(files: Sequence[Path]) -> Path:
    python = [path for path in files if path.suffix == ".py"]
    named = [path for path in python if path.name == MAIN_FILE]
    found = named or python
    if len(found) != 1:
        got = ", ".join(map(str, found)) or "none"
        raise UsageError(f"FILE: expected one Python file, or one {MAIN_FILE}, got {got}")
    return found[0]


def _name_below(path: Path, root: Path) -> str:
    try:
        return path.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        raise UsageError(f"FILE: expected a file in {root} or below, got {path}") from None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"FILE: expected a readable text file, got {path}: {error}") from error


def _template(name: str, facts: Mapping[str, str]) -> str:
    text = (importlib.resources.files("kernelgym") / "templates" / name).read_text("utf-8")
    for key, value in facts.items():
        text = text.replace(f"@{key}@", value)
    return text
