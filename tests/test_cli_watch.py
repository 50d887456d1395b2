from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kernelgym.errors import UsageError
from kernelgym.watching import saves
from kernelgym.workspace_folder import Candidate


def test_only_changes_are_judged(tmp_path: Path) -> None:
    path = tmp_path / "relu.py"
    path.write_text("x = 1\n")
    stop = threading.Event()
    found = saves([path], stop)
    seen: list[Candidate | UsageError] = [next(found)]

    def save() -> None:
        path.write_text("x = 1\n")  # the same again
        (tmp_path / "notes.txt").write_text("not a source")
        fresh = tmp_path / "relu.py.new"
        fresh.write_text("x = 2\n")
        fresh.replace(path)  # as editors save

    writer = threading.Timer(0.5, save)
    writer.start()
    seen.append(next(found))
    writer.join()
    stop.set()
    assert list(found) == []
    texts = [one.workspace.files["model_new.py"] for one in seen if isinstance(one, Candidate)]
    assert texts == ["x = 1\n", "x = 2\n"]


def test_what_cannot_be_read_is_said_and_watched_on(tmp_path: Path) -> None:
    found = saves([tmp_path / "later.py"])
    assert isinstance(next(found), UsageError)
    writer = threading.Timer(0.5, lambda: (tmp_path / "later.py").write_text("x = 1\n"))
    writer.start()
    now = next(found)
    assert isinstance(now, Candidate)
    assert now.workspace.files["model_new.py"] == "x = 1\n"
    writer.join()


def test_a_folder_that_is_not_there_cannot_be_watched(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected a file in a folder that exists"):
        next(saves([tmp_path / "nowhere" / "later.py"]))


def test_ctrl_c_ends_it_cleanly(tmp_path: Path) -> None:
    (tmp_path / "start.py").write_text("from torch import nn\n\n\nclass ModelNew(nn.Module): ...\n")
    command = [sys.executable, "-m", "kernelgym.cli", "watch", "L1/19", str(tmp_path / "start.py")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    # The first verdict has been written whole when its last line comes.
    for line in process.stdout:
        if "judged in" in line:
            break
    process.send_signal(signal.SIGINT)
    rest, problems = process.communicate(timeout=60)
    assert process.returncode == 0, problems
    assert "Stopped." in rest
    assert "Traceback" not in problems
