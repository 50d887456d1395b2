"""What the setup script says before it installs anything."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "setup.sh"


def _program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("compiler", "python", "said"),
    [
        ("echo 9.4.0", "exit 0", "expected g++ 11 or newer on PATH, got 9.4.0 at "),
        (
            "echo 12.2.0",
            'case "$*" in *venv*) exit 1;; *--version*) echo Python 3.11.2;; esac',
            "expected a Python with venv, got Python 3.11.2 without it",
        ),
        (
            "echo 12.2.0",
            'case "$*" in *version_info*) exit 1;; *) echo Python 3.8.1;; esac',
            "expected Python 3.10 or newer, got Python 3.8.1",
        ),
    ],
)
def test_what_is_missing_is_said_first(
    compiler: str, python: str, said: str, tmp_path: Path
) -> None:
    _program(tmp_path / "g++", compiler)
    _program(tmp_path / "python", python)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", str(SCRIPT), str(tmp_path / "venv")],
        env={"PATH": path, "PYTHON": str(tmp_path / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(said)
    assert not (tmp_path / "venv").exists()
