from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kernelgym import agents, demo, edits, tasks
from kernelgym.errors import UsageError
from kernelgym.judge.judge import Judge
from kernelgym.judge.verdict import Outcome
from kernelgym.workspace import Workspace


def test_the_script_makes_the_mistakes_that_it_is_about() -> None:
    """Each step is judged as the demonstration does; the outcomes are what it tells of."""
    task = tasks.get("L1/23")
    workspace = Workspace.initial(task, "small")
    told = []
    times = []
    patterns = []
    with Judge() as judge:
        for text in demo.script()[:-1]:
            workspace = edits.parse(text).apply(workspace)
            verdict = judge.evaluate(task, workspace)
            told.append((verdict.outcome, verdict.reason))
            if verdict.timing is not None:
                times.append(verdict.timing.candidate.median)
            if verdict.outcome is Outcome.COMPILE_ERROR:
                line = workspace.files["model_new.py"].splitlines()[verdict.diagnostics[0].line - 1]
                assert line.endswith("expf(x[i] - highest)")
            if verdict.correctness is not None:
                patterns.append(verdict.correctness.pattern)
    assert [outcome for outcome, _ in told] == [
        Outcome.REJECTED,
        Outcome.COMPILE_ERROR,
        Outcome.CORRECT,
        Outcome.INCORRECT,
        Outcome.INCORRECT,
        Outcome.CORRECT,
    ]
    assert told[0][1] == "rule.torch_compute"
    assert told[3][1].startswith("check.")
    assert "last 3 columns" in patterns[1]
    assert told[4][1] == "race.shared"
    assert times[1] < times[0] / 5
    assert edits.parse(demo.script()[-1]).submits


def test_the_demonstration_shows_each_turn_and_writes_reports(
    tmp_path: Path, fake_judge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = "I try this.\n\n```python model_new.py\n# {}\n```\n"
    monkeypatch.setattr("kernelgym.judging.LazyJudge", lambda config: fake_judge)
    monkeypatch.setattr(demo, "_warm_up", lambda console: None)
    monkeypatch.setattr(demo, "script", lambda: (write.format("syntax!"), write.format("fast=2 ")))
    search = demo.ScriptedAgent((write.format("fast=3 "),))
    monkeypatch.setattr(agents, "get", lambda name: search, raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "activate").touch()
    said = io.StringIO()
    assert demo.play_demo(tmp_path / "demo", Console(file=said, width=200))
    text = said.getvalue()
    for expected in (
        "L1/23 Softmax",
        "agent I try this.",
        "+# syntax!",
        "compile_error",
        "expected ';'",
        "correct, 2.00x eager",
        "correct, 3.00x eager",
        "judging…",
        "judged in 0.",
        "bin/activate",
        "kernelgym doctor",
    ):
        assert expected in text
    for folder in ("L1-023", "L1-036"):
        assert (tmp_path / "demo" / folder / "report.html").exists()
    # A second demonstration takes the first one's place; anything else is left alone.
    assert demo.play_demo(tmp_path / "demo", Console(file=said))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    with pytest.raises(UsageError, match="expected a new folder"):
        demo.play_demo(tmp_path / "mine", Console(file=said))
