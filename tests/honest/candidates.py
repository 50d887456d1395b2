"""The honest candidates of this folder: one file, or one folder of files, each.

A name starts with the task: `l1_019_plain.py` is for `L1/19`, `l1_019_files/` is a workspace of
several files for it. `controls/` holds what the emulator and a GPU can run, `gpu_only/` the rest.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re

HERE = pathlib.Path(__file__).parent


@dataclasses.dataclass(frozen=True)
class Control:
    """One candidate: its name, its task's id, and its workspace, path → text."""

    name: str
    task: str
    files: dict[str, str] = dataclasses.field(repr=False)


def read(folder: str = "controls") -> dict[str, Control]:
    """Every candidate of a folder, by name, in order of names."""
    found = {}
    for path in sorted((HERE / folder).iterdir()):
        match = re.match(r"l(\d)_(\d{3})_(\w+)", path.name)
        if match is None:
            continue
        if path.is_dir():
            files = {
                str(file.relative_to(path)): file.read_text()
                for file in sorted(path.rglob("*"))
                if file.is_file() and "__pycache__" not in file.parts
            }
        else:
            files = {"model_new.py": path.read_text()}
        found[path.stem] = Control(path.stem, f"L{match[1]}/{int(match[2])}", files)
    return found
