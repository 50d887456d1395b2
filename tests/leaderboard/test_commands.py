"""`kernelgym leaderboard` as it is called."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from kernelgym.cli import app
from tests.leaderboard.stubs import FIXTURES, StubJudge


@pytest.fixture
def call(monkeypatch, tmp_path):
    monkeypatch.setattr("kernelgym.judging.LazyJudge", StubJudge)

    def run(*arguments):
        result = CliRunner().invoke(app, ["leaderboard", *map(str, arguments)])
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result

    return run


def test_submit_says_what_to_commit(call, make_run, entries, tmp_path):
    result = call(
        *("submit", make_run(), "--name", "My agent", "--authors", "Ada, Grace"),
        *(
            "--entries",
            entries,
            "--cache",
            tmp_path / "cache",
            "--full",
            "--model-date",
            "2026-05-01",
        ),
    )
    assert result.exit_code == 0, result.output
    folder = next(entries.glob("*/my-agent"))
    assert f"git add {folder}" in result.output
    assert "gh pr create" in result.output
    assert "3 of 250 tasks have a verdict" in result.output
    assert "rejected, and shown as such: L2/76 (rule.torch_compute)" in result.output
    assert "judging: 3 of 3" in result.output


def test_a_wrong_date_is_a_usage_error(call, make_run, entries):
    result = call(
        *("submit", make_run(), "--name", "x", "--authors", "A", "--entries", entries),
        *("--model-date", "May"),
    )
    assert result.exit_code == 2
    assert "--model-date: expected YYYY-MM-DD, got 'May'" in result.output


def test_verify_stamps_or_lists(call, make_run, entries, tmp_path):
    shared = ("--entries", entries, "--cache", tmp_path / "cache")
    call("submit", make_run(), "--name", "a", "--authors", "A", *shared)
    result = call("verify", "a", "--by", "Maintainers", "--where", "runner", *shared)
    assert result.exit_code == 0, result.output
    assert "self-checked, 3 solutions agree" in result.output
    assert "somebody else's makes an entry verified" in result.output
    path = next(entries.glob("*/a")) / "solutions" / "L1-019" / "model_new.py"
    path.write_text(path.read_text() + "\n")
    result = call("verify", "a", "--by", "Maintainers", *shared)
    assert result.exit_code == 2
    assert "a swapped or edited solution" in result.output


def test_check_lists_every_problem(call, fixtures, first):
    assert call("check", "--entries", fixtures).output == "2 entries, 0 problems\n"
    (first / "entry.yaml").write_text("a: [")
    result = call("check", "--entries", fixtures)
    assert result.exit_code == 1
    assert result.output.startswith("record: ")
    assert "2 entries, 1 problem\n" in result.output
    assert call("check", "second-wind", "--entries", fixtures).exit_code == 0


def test_check_says_whose_problem_it_is_where_there_are_several(call, fixtures, first):
    environment = first / "environment.json"
    environment.write_text(environment.read_text().replace('"draws": 5', '"draws": 1'))
    changed = environment.read_text()
    assert '"draws": 1' in changed
    every = call("check", "--entries", fixtures)
    alone = call("check", first, "--entries", fixtures)
    assert f"rules.draws: {first.parent.name}/first-light: environment.json: " in every.output
    assert "rules.draws: environment.json: " in alone.output


def test_it_is_a_module_too():
    done = subprocess.run(
        [sys.executable, "-m", "kernelgym.leaderboard", "check", "--entries", str(FIXTURES)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "2 entries, 0 problems\n")
