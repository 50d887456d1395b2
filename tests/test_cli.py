from __future__ import annotations

import dataclasses
import io
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

import kernelgym.judge.judge
from kernelgym import tasks as registry
from kernelgym._version import __version__
from kernelgym.cli import app, catalogue, console
from kernelgym.cli.console import Progress
from kernelgym.cli.exits import Exit, exit_of
from kernelgym.cli.verdict_view import panel
from kernelgym.config import JudgeConfig
from kernelgym.errors import ToolchainFault
from kernelgym.judge.verdict import (
    Correctness,
    Diagnostic,
    Mismatch,
    Outcome,
    Verdict,
    from_json,
)
from kernelgym.tasks.laws import KINDS, Law

COMMANDS = (
    "tasks",
    "show",
    "evaluate",
    "watch",
    "compare",
    "workspace",
    "run",
    "report",
    "doctor",
    "demo",
)
PROBLEM = Diagnostic("model_new.py", 3, 7, "error", "expected ';'", "  x\n  ^", "g++")


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner()


@dataclasses.dataclass
class Judgements:
    """Stands in for `Judge`: gives one verdict (or fault), and remembers what was asked."""

    answer: Verdict | Exception
    config: JudgeConfig | None = None
    files: dict[str, str] = dataclasses.field(default_factory=dict)

    def __call__(self, config: JudgeConfig) -> Judgements:
        self.config = config
        return self

    def __enter__(self) -> Judgements:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def evaluate(self, task: Any, workspace: Any) -> Verdict:
        self.files = dict(workspace.files)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Callable[[Verdict | Exception], Judgements]:
    def install(answer: Verdict | Exception) -> Judgements:
        judgements = Judgements(answer)
        monkeypatch.setattr(kernelgym.judge.judge, "Judge", judgements)
        return judgements

    return install


@pytest.fixture
def candidate(tmp_path: Path) -> Path:
    path = tmp_path / "relu.py"
    path.write_text("import torch\n")
    return path


def test_help_names_every_command_and_the_exit_codes(runner: CliRunner) -> None:
    result = runner.invoke(app, ["--help"])
    assert result.exit_code == 0
    for command in COMMANDS:
        assert re.search(rf"\b{command}\b", result.output)
    assert "0 correct" in result.output
    for command in COMMANDS:
        assert runner.invoke(app, [command, "--help"]).exit_code == 0


def test_version(runner: CliRunner) -> None:
    assert runner.invoke(app, ["--version"]).output == f"kernelgym {__version__}\n"


def test_help_waits_for_no_torch() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from kernelgym.cli import app\n"
        "assert CliRunner().invoke(app, ['evaluate', '--help']).exit_code == 0\n"
        "print(sorted({'torch', 'jinja2', 'watchfiles'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def _called(command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a command line by bash, with `kernelgym` of this interpreter."""
    shell = f'set -o pipefail; kernelgym() {{ {sys.executable} -m kernelgym.cli "$@"; }}; {command}'
    return subprocess.run(["bash", "-c", shell], capture_output=True, text=True, cwd=cwd)


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (
            "kernelgym tsks",
            Exit.USAGE,
            "kernelgym: No such command 'tsks'. Did you mean 'tasks'?\n",
        ),
        ("kernelgym evaluate", Exit.USAGE, "kernelgym: Missing argument 'TASK'.\n"),
        (
            "kernelgym show L1/19 >/dev/full",
            Exit.FAULT,
            "kernelgym: cannot write the output: No space left on device\n",
        ),
        ("kernelgym show L1/19 | true", Exit.CLOSED, ""),
    ],
)
def test_what_goes_wrong_outside_of_a_judgement_is_one_line(
    command: str, code: Exit, said: str
) -> None:
    done = _called(command)
    assert (done.returncode, done.stderr) == (code, said)


def test_every_outcome_has_a_code_of_its_own_and_only_correct_is_zero() -> None:
    codes = {outcome: exit_of(outcome) for outcome in Outcome}
    assert len(set(codes.values())) == len(Outcome)
    assert [outcome for outcome, code in codes.items() if code == 0] == [Outcome.CORRECT]
    assert not {Exit.NO, Exit.USAGE, Exit.FAULT, Exit.INTERRUPTED} & set(codes.values())


@pytest.mark.parametrize("outcome", list(Outcome))
def test_evaluate_ends_with_the_outcomes_code(
    outcome: Outcome,
    runner: CliRunner,
    candidate: Path,
    judged: Callable[..., Judgements],
    make_verdict: Callable[..., Verdict],
) -> None:
    judged(make_verdict(outcome, message="what was seen"))
    result = runner.invoke(app, ["evaluate", "L1/19", str(candidate)])
    assert result.exit_code == exit_of(outcome)
    assert result.stdout.startswith(f"L1/19  {outcome}")
    assert "what was seen" in result.stdout


def test_the_text_has_what_helps_with_the_next_edit(
    runner: CliRunner,
    candidate: Path,
    judged: Callable[..., Judgements],
    make_verdict: Callable[..., Verdict],
    make_counters: Callable[..., Any],
) -> None:
    check = Correctness(
        draws=5,
        passed=1,
        bad_elements=7,
        elements=100,
        worst=Mismatch((3, 4), 1.5, None),
        pattern="all errors in the last 3 columns",
    )
    judged(
        make_verdict(
            Outcome.INCORRECT,
            reason="check.tail",
            diagnostics=(PROBLEM,),
            correctness=check,
            eager=(2.0, 1.9, 2.1),
            counters=make_counters(dram_bytes_read=98688.0, dram_bytes_written=98688.0),
        )
    )
    text = runner.invoke(app, ["evaluate", "L1/19", str(candidate)]).stdout
    for expected in (
        "check.tail",
        "What to do: Handle sizes",
        "model_new.py:3:7: error: expected ';'",
        "output[3, 4] expected 1.5, got not finite",
        "all errors in the last 3 columns",
        "10 us modelled",
        "2.00x",
        "2.00 x the least (98.7 kB)",
    ):
        assert expected in text


def test_json_is_the_verdict(
    runner: CliRunner,
    candidate: Path,
    judged: Callable[..., Judgements],
    make_verdict: Callable[..., Verdict],
) -> None:
    verdict = make_verdict(Outcome.COMPILE_ERROR, diagnostics=(PROBLEM,))
    judged(verdict)
    result = runner.invoke(app, ["evaluate", "L1/19", str(candidate), "--json"])
    assert from_json(result.stdout) == verdict


def test_formats_for_editors_name_the_file_on_disk(
    runner: CliRunner,
    candidate: Path,
    judged: Callable[..., Judgements],
    make_verdict: Callable[..., Verdict],
) -> None:
    judged(make_verdict(Outcome.COMPILE_ERROR, diagnostics=(PROBLEM,)))
    arguments = ["evaluate", "L1/19", str(candidate), "--format"]
    gcc = runner.invoke(app, [*arguments, "gcc"])
    assert gcc.exit_code == Exit.COMPILE_ERROR
    assert gcc.stdout.splitlines()[0] == f"{candidate}:3:7: error: expected ';'"
    log = json.loads(runner.invoke(app, [*arguments, "sarif"]).stdout)
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == str(candidate)
    assert place["region"]["startLine"] == 3


def test_an_editor_never_sees_a_wrong_kernel_as_clean(
    runner: CliRunner,
    candidate: Path,
    judged: Callable[..., Judgements],
    make_verdict: Callable[..., Verdict],
) -> None:
    judged(make_verdict(Outcome.INCORRECT, reason="check.values", message="7 of 9\nelements"))
    result = runner.invoke(app, ["evaluate", "L1/19", str(candidate), "--format", "gcc"])
    assert result.stdout == f"{candidate}:1:1: error: 7 of 9 elements [check.values]\n"
    judged(make_verdict(Outcome.CORRECT))
    result = runner.invoke(app, ["evaluate", "L1/19", str(candidate), "--format", "gcc"])
    assert (result.stdout, result.exit_code) == ("", 0)


def test_options_reach_the_judge(
    runner: CliRunner,
    candidate: Path,
    judged: Callable[..., Judgements],
    make_verdict: Callable[..., Verdict],
) -> None:
    judge = judged(make_verdict())
    options = ["--draws", "2", "--seed", "7", "--memory-limit", "0.5", "--no-counters"]
    options += ["--size", "full", "--protocol", "kernelbench", "--baselines", "eager"]
    options += ["--nvcc-check", "--run-timeout", "9", "--protection", "basic"]
    assert runner.invoke(app, ["evaluate", "L1/19", str(candidate), *options]).exit_code == 0
    assert judge.config == JudgeConfig(
        draws=2,
        seed=7,
        memory_limit=2**29,
        counters=False,
        size="full",
        protocol="kernelbench",
        baselines=("eager",),
        nvcc_check=True,
        run_timeout=9.0,
        protection="basic",
    )
    assert judge.files == {"model_new.py": "import torch\n"}
    runner.invoke(app, ["evaluate", "L1/19", str(candidate)])
    assert judge.config == JudgeConfig()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["evaluate", "L1/999", "x.py"], "L1/999"),
        (["evaluate", "L1/19", "nowhere.py"], "nowhere.py"),
        (["evaluate", "L1/19", "x.py", "--size", "huge"], "'huge'"),
        (["evaluate", "L1/19", "x.py", "--format", "xml"], "'xml'"),
        (["evaluate", "L1/19", "x.py", "--draws", "0"], "draws"),
        (["show", "L9/1"], "L9/1"),
        (["tasks", "--level", "4"], "4"),
        (["report", "nowhere"], "nowhere"),
    ],
)
def test_wrong_usage_is_one_line_and_code_2(
    arguments: list[str], said: str, runner: CliRunner
) -> None:
    result = runner.invoke(app, arguments)
    assert result.exit_code == Exit.USAGE
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert line.startswith("kernelgym: ")
    assert said in line


def test_a_fault_says_that_the_candidate_is_not_to_blame(
    runner: CliRunner, candidate: Path, judged: Callable[..., Judgements]
) -> None:
    judged(ToolchainFault("expected g++, got none"))
    result = runner.invoke(app, ["evaluate", "L1/19", str(candidate)])
    assert result.exit_code == Exit.FAULT
    assert "ToolchainFault: expected g++, got none" in result.stderr
    assert "not the candidate's fault" in result.stderr
    assert "kernelgym doctor" in result.stderr


def test_tasks_lists_shapes_and_costs(runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "ids", lambda level=None: ("L1/1", "L1/19"))
    rows = json.loads(runner.invoke(app, ["tasks", "--json"]).stdout)
    assert [row["id"] for row in rows] == ["L1/1", "L1/19"]
    relu = rows[1]
    assert relu["inputs"] == ["float32[16, 771]"]
    assert relu["min_bytes"] == 2 * 4 * 16 * 771
    assert rows[0]["flops"] > 0
    lines = runner.invoke(app, ["tasks"]).stdout.splitlines()
    assert lines[1].split("\t") == ["L1/19", "ReLU", "float32[16, 771]", "-", "98.7 kB"]


def test_show_gives_the_source_that_an_agent_is_shown(runner: CliRunner) -> None:
    text = runner.invoke(app, ["show", "L1/19", "--size", "full"]).stdout
    assert registry.get("L1/19").source("full").strip() in text
    assert "float32[4096, 393216]" in text


def test_evaluate_really_judges(tmp_path: Path) -> None:
    """The command as it is typed: a right kernel, and one without its semicolon."""
    good = (Path(kernelgym.__file__).parent / "templates" / "doctor_candidate.py").read_text()
    line = next(i for i, text in enumerate(good.splitlines(), 1) if "y[i] = " in text)
    command = [sys.executable, "-m", "kernelgym.cli", "evaluate", "L1/19"]
    for name, text in (("good.py", good), ("bad.py", good.replace("0.0f);", "0.0f)"))):
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [*command, tmp_path / "good.py", "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert from_json(done.stdout).outcome is Outcome.CORRECT
    done = subprocess.run(
        [*command, "bad.py", "--format", "gcc"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == Exit.COMPILE_ERROR, done.stderr
    assert done.stdout.startswith(f"bad.py:{line}:")
    assert "Traceback" not in done.stderr


def test_sarif_explains_the_reasons_of_verdicts(
    runner: CliRunner,
    candidate: Path,
    judged: Callable[..., Judgements],
    make_verdict: Callable[..., Verdict],
) -> None:
    judged(make_verdict(Outcome.REJECTED, reason="rule.no_own_kernel", message="no kernel"))
    result = runner.invoke(app, ["evaluate", "L1/19", str(candidate), "--format", "sarif"])
    [rule] = json.loads(result.stdout)["runs"][0]["tool"]["driver"]["rules"]
    assert rule["help"] == {"text": "Launch your kernel in forward."}
    assert "launched no kernel" in rule["fullDescription"]["text"]


def test_a_narrow_terminal_shows_the_whole_foot(make_verdict: Callable[..., Verdict]) -> None:
    said = io.StringIO()
    verdict = make_verdict(Outcome.CORRECT, seconds=(("check", 1.25), ("time", 2.0)))
    Console(file=said, width=40).print(panel(verdict))
    lines = [line.strip("│ ") for line in said.getvalue().splitlines()]
    assert "judged in 3.2 s" in " ".join(lines)
    assert f"size {verdict.provenance.size}," in " ".join(lines)


def test_every_law_is_told_in_words() -> None:
    for kind, count in KINDS.items():
        said = catalogue._law(Law(kind, (1.5, 2.5)[:count]))
        assert said.startswith(f"{kind}: ")
        assert [number in said for number in ("1.5", "2.5")] == [count > 0, count > 1]


def test_the_page_lists_every_exit_code() -> None:
    page = (Path(__file__).parents[1] / "docs" / "cli.md").read_text()
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", page, re.MULTILINE)
    assert [(int(code), name) for code, name in rows] == [(int(one), one.name) for one in Exit]
    for command in COMMANDS:
        assert f"kernelgym {command}" in page


def test_what_takes_long_is_said_once_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "_PATIENCE_SECONDS", 0.05)
    with Progress("Judging L1/19…"):
        time.sleep(0.3)
    with Progress("quick"):
        pass
    time.sleep(0.1)
    captured = capsys.readouterr()
    assert captured.err == "kernelgym: Judging L1/19…\n"
    assert captured.out == ""
