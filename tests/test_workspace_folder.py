from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kernelgym import tasks
from kernelgym.errors import UsageError
from kernelgym.workspace import Workspace
from kernelgym.workspace_folder import create, read_candidate

TASK_FILE = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.rand(4, 4)]


def get_init_inputs():
    return []
"""


def test_one_python_file_becomes_the_main_file(tmp_path: Path) -> None:
    path = tmp_path / "anything.py"
    path.write_text("x = 1\n")
    candidate = read_candidate([path])
    assert dict(candidate.workspace.files) == {"model_new.py": "x = 1\n"}
    assert candidate.places == {"model_new.py": path}


def test_files_keep_their_places_below_the_main_file(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "mine.py").write_text("")
    (tmp_path / "kernels" / "a.cuh").write_text("// a")
    candidate = read_candidate([tmp_path / "mine.py", tmp_path / "kernels" / "a.cuh"])
    assert set(candidate.workspace.files) == {"model_new.py", "kernels/a.cuh"}


def test_a_folder_is_read_without_what_is_no_source(tmp_path: Path) -> None:
    for name in ("model_new.py", "a.cu", "reference.py", "AGENTS.md", "judge", ".hidden.py"):
        (tmp_path / name).write_text("")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "x.py").write_text("")
    assert set(read_candidate([tmp_path]).workspace.files) == {"model_new.py", "a.cu"}


def test_what_is_no_candidate_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("in/a.py", "in/b.py", "out.cuh"):
        (tmp_path / name).write_text("")
    with pytest.raises(UsageError, match=r"expected model_new.py"):
        read_candidate([tmp_path / "in"])
    with pytest.raises(UsageError, match=r"one Python file.*a\.py.*b\.py"):
        read_candidate([tmp_path / "in" / "a.py", tmp_path / "in" / "b.py"])
    with pytest.raises(UsageError, match="or below"):
        read_candidate([tmp_path / "in" / "a.py", tmp_path / "out.cuh"])
    with pytest.raises(UsageError, match="got none"):
        read_candidate([tmp_path / "out.cuh"])
    (tmp_path / "latin.py").write_bytes(b"# \xe9")
    with pytest.raises(UsageError, match="readable"):
        read_candidate([tmp_path / "latin.py"])


def test_a_new_folder_holds_what_is_needed(tmp_path: Path) -> None:
    task = tasks.get("L1/19")
    root = create(task, tmp_path / "deep" / "relu", "small")
    start = Workspace.initial(task, "small")
    assert (root / "reference.py").read_text() == start.reference
    assert dict(read_candidate([root]).workspace.files) == dict(start.files)
    assert os.access(root / "judge", os.X_OK)
    text = (root / "AGENTS.md").read_text()
    assert text.startswith("# L1/19: ReLU\n")
    assert "@" not in text.replace("x @ y", "")


def test_a_folder_with_content_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(UsageError, match="empty folder"):
        create(tasks.get("L1/19"), tmp_path, "small")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(UsageError, match="empty folder"):
        create(tasks.get("L1/19"), tmp_path / "mine.txt", "small")


def test_the_judge_command_judges_the_folder(tmp_path: Path) -> None:
    """Also for a task from a file, in a folder with a space and a file named like a module."""
    (tmp_path / "my_task.py").write_text(TASK_FILE)
    root = create(tasks.load_file(tmp_path / "my_task.py"), tmp_path / "a b", "full")
    (root / "typer.py").write_text("raise SystemExit('the folder is on the path')")
    done = subprocess.run([root / "judge", "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert '"reason":"rule.torch_compute"' in done.stdout


def test_a_folder_that_cannot_be_made_is_a_wrong_call(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    place = tmp_path / "file" / "work"
    with pytest.raises(UsageError, match=f"cannot write {place}: Not a directory"):
        create(tasks.get("L1/19"), place, "small")
