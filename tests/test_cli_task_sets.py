"""`kernelgym tasks synthesize` and `kernelgym tasks load`."""

import json

import pytest
import typer
from typer.testing import CliRunner

from kernelgym.cli import catalogue, task_sets
from kernelgym.errors import UsageError
from kernelgym.judge import synthesis
from kernelgym.judge.device_models import H200
from kernelgym.judge.synthesis_filters import Criteria
from kernelgym.tasks.records import read_tasks

GOOD = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x) * 2


def get_inputs():
    return [torch.rand(8, 32)]


def get_init_inputs():
    return []
"""


@pytest.fixture
def run():
    app = typer.Typer()
    app.callback()(lambda: None)
    task_sets.add_to(app)
    return lambda *arguments: CliRunner().invoke(app, ["tasks", *arguments])


def test_load_writes_the_fit_and_names_the_others(run, tmp_path):
    rows = [
        {"id": "good", "text": GOOD},
        {"id": "blind", "text": GOOD.replace("tanh(x) * 2", "zeros_like(x)")},
    ]
    source, out = tmp_path / "rows.jsonl", tmp_path / "fit.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{broken\n")
    result = run("load", str(source), "--out", str(out), "--workers", "1")
    assert result.exit_code == 0, result.output
    assert "1 fit, 2 rejected" in result.stdout
    assert "rows.jsonl:3: format" in result.stdout
    assert "(blind): degenerate" in result.stdout
    assert [task.id for task in read_tasks(out)] == ["good"]


def test_load_of_nothing_is_a_usage_error(run):
    result = run("load", "nowhere.jsonl")
    assert result.exit_code == 2
    assert "expected a folder, a .py, .jsonl or .parquet file" in result.stderr


def test_synthesize_passes_its_options_on_and_sums_up(run, tmp_path, monkeypatch):
    given = {}

    def fake(count, seed, out, **arguments):
        given.update(arguments, count=count, seed=seed, out=out)
        arguments["progress"](count, count + 3)
        return synthesis.Manifest(
            "0", "2", seed, count, (1.0,), arguments["criteria"], count + 3,
            {"runtime": 0, "degenerate": 3}, 0, {"2": count}, {"heldout": 1, "train": 4}, {}, "",
        )  # fmt: skip

    monkeypatch.setattr(synthesis, "synthesize", fake)
    out = tmp_path / "tasks.jsonl"
    result = run("synthesize", "--count", "5", "--seed", "7", "--out", str(out), "--inductor", "0")
    assert result.exit_code == 0, result.output
    assert (given["count"], given["seed"], given["out"]) == (5, 7, out)
    assert given["criteria"] == Criteria(H200, inductor_share=0)
    assert "5 tasks (1 heldout, 4 train) of 8 candidates" in result.stdout
    assert "dropped: degenerate 3;" in result.stdout


def test_synthesize_says_what_is_wrong(run, tmp_path):
    result = run("synthesize", "--count", "0", "--out", str(tmp_path / "tasks.jsonl"))
    assert result.exit_code == 2
    assert "count: expected a whole number of at least 1, got 0" in result.stderr


def test_without_a_command_the_tasks_are_listed(run, monkeypatch):
    asked = []
    monkeypatch.setattr(catalogue, "tasks", lambda *arguments: asked.append(arguments))
    assert run("--level", "1", "--json").exit_code == 0
    assert asked == [(1, "small", True)]


def test_listing_still_says_what_is_wrong(run, monkeypatch):
    def fail(*arguments):
        raise UsageError("level: expected one of [1, 2, 3], got 4")

    monkeypatch.setattr(catalogue, "tasks", fail)
    result = run("--level", "4")
    assert result.exit_code == 2
    assert "level: expected one of" in result.stderr
