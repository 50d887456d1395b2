"""Command-line coding agents: stand-ins that behave, talk, hang, and start what outlives them."""

from __future__ import annotations

import json
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from kernelgym import runs, tasks
from kernelgym.agents.coding_cli import CodingCLI
from kernelgym.budget import Budget, Usage
from kernelgym.config import JudgeConfig
from kernelgym.errors import AgentError, UsageError
from kernelgym.evaluation import evaluate_agent
from kernelgym.judge.judge import Judge
from kernelgym.runner import run_episode
from tests.honest.candidates import read

WRITES = """
from pathlib import Path
text = Path("model_new.py").read_text()
Path("model_new.py").write_text("# fast=2.0 \\n" + text)
Path("extra.cuh").write_text("// more\\n")
print('{"usage": {"input_tokens": 120, "output_tokens": 30}}', flush=True)
"""


def stand_in(folder: Path, code: str) -> str:
    path = folder / "stand_in.py"
    path.write_text(code)
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(path))}"


def play(agent: CodingCLI, judge: Any, out: Path, budget: Budget) -> runs.TaskResult:
    plan = runs.RunPlan("cli", ("L1/19",), judge.config, budget.turns or 8, budget=budget)
    [result] = runs.play(plan, [tasks.get("L1/19")], agent, out, judge=judge)
    return result


def test_what_it_leaves_is_its_answer(tmp_path: Path, fake_judge: Any) -> None:
    command = stand_in(tmp_path, "import sys; print(sys.stdin.read())\n" + WRITES)
    agent = CodingCLI(command=command, folder=str(tmp_path / "kept"))
    result = play(agent, fake_judge, tmp_path / "run", Budget(verdicts=1))
    assert (result.solved, result.turns) == (True, 1)
    solution = tmp_path / "run" / "solutions" / "L1-019"
    assert (solution / "extra.cuh").read_text() == "// more\n"
    kept = tmp_path / "kept" / "L1-019"
    assert "Read AGENTS.md" in (kept / "output.txt").read_text()
    assert "gives you 0 verdicts" in (kept / "prompt.txt").read_text()
    assert not (kept / "work" / "judge").exists()
    assert agent.usage == Usage(0, 120, 30)
    ended = json.loads((kept / "ended.json").read_text())
    assert (ended["code"], ended["stopped"]) == (0, "")


def test_the_prompt_may_be_an_argument(tmp_path: Path, fake_judge: Any) -> None:
    command = stand_in(tmp_path, "import sys\nprint(sys.argv[1:], sys.stdin.read() == '')\n")
    agent = CodingCLI(
        command=command + " -p {prompt} {folder}", prompt="A b;c", folder=str(tmp_path / "kept")
    )
    play(agent, fake_judge, tmp_path / "run", Budget(verdicts=1))
    kept = tmp_path / "kept" / "L1-019"
    said = (kept / "output.txt").read_text()
    assert said.strip() == f"{['-p', 'A b;c', str(kept / 'work')]} True"


def children(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if any(str(folder) in word for word in process.info["cmdline"] or ()):
            found.append(process)
    return found


def test_time_ends_it_with_all_that_it_started(tmp_path: Path, fake_judge: Any) -> None:
    code = WRITES + (
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"idle = [sys.executable, '-c', 'import time; time.sleep(99)', {str(tmp_path)!r}]\n"
        "subprocess.Popen(idle)\n"
        "subprocess.Popen(idle, start_new_session=True)\n"
        "time.sleep(99)\n"
    )
    agent = CodingCLI(command=stand_in(tmp_path, code), folder=str(tmp_path / "kept"))
    began = time.monotonic()
    result = play(agent, fake_judge, tmp_path / "run", Budget(verdicts=1, seconds=1.5))
    assert time.monotonic() - began < 30
    assert result.solved
    ended = json.loads((tmp_path / "kept" / "L1-019" / "ended.json").read_text())
    assert ended["stopped"] == "seconds"
    assert ended["code"] == -9
    assert children(tmp_path) == []


def test_tokens_end_it(tmp_path: Path, fake_judge: Any) -> None:
    code = "import time\nwhile True:\n    print('used 400', flush=True)\n    time.sleep(0.05)\n"
    agent = CodingCLI(
        command=stand_in(tmp_path, code),
        folder=str(tmp_path / "kept"),
        tokens_pattern=r"used (?P<completion>\d+)",
    )
    result = play(agent, fake_judge, tmp_path / "run", Budget(verdicts=1, tokens=1000))
    assert not result.solved
    assert agent.usage.completion_tokens >= 1200
    ended = json.loads((tmp_path / "kept" / "L1-019" / "ended.json").read_text())
    assert ended["stopped"] == "tokens"


def test_what_cannot_be_handed_in_is_no_answer(
    tmp_path: Path, fake_judge: Any, make_env: Any
) -> None:
    code = "import os; os.remove('model_new.py')\n"
    agent = CodingCLI(command=stand_in(tmp_path, code), folder=str(tmp_path / "kept"), verdicts=1)
    result = run_episode(make_env(), agent)
    assert [turn.action for turn in result.turns] == ["submit\n"]
    run_episode(make_env(), agent)
    assert (tmp_path / "kept" / "L1-019-2" / "output.txt").exists()


def test_misuse_is_named(tmp_path: Path, make_env: Any) -> None:
    for fields, said in (
        ({"command": ""}, "command"),
        ({"command": "a 'b"}, "command"),
        ({"command": "a", "tokens_pattern": "("}, "tokens_pattern"),
        ({"command": "a", "verdicts": 0}, "verdicts"),
    ):
        with pytest.raises(UsageError, match=said):
            CodingCLI(**fields)
    agent = CodingCLI(command="/no/such/program", folder=str(tmp_path), verdicts=1)
    with pytest.raises(AgentError, match="expected a command that starts"):
        run_episode(make_env(), agent)


def test_it_is_judged_through_the_service(tmp_path: Path) -> None:
    right = read()["l1_019_plain"].files["model_new.py"]
    code = (
        "import json, subprocess\nfrom pathlib import Path\n"
        "def judge():\n"
        "    done = subprocess.run(['./judge', '--json'], capture_output=True, text=True)\n"
        "    told = done.stdout or done.stderr\n"
        "    print(done.returncode, told[:200], flush=True)\n"
        "judge()\n"
        f"Path('model_new.py').write_text({right!r})\n"
        "judge()\n"
        "judge()\n"
    )
    agent = CodingCLI(command=stand_in(tmp_path, code), folder=str(tmp_path / "kept"))
    config = JudgeConfig(device="cpu", draws=1, counters=False, baselines=("eager",))
    with Judge(config) as judge:
        found = evaluate_agent(
            agent, ["L1/19"], Budget(verdicts=3, seconds=200), out=tmp_path / "run", judge=judge
        )
    kept = tmp_path / "kept" / "L1-019"
    said = (kept / "output.txt").read_text()
    assert found.best["all"].correct.value == 1.0, said
    lines = said.splitlines()
    assert lines[0].startswith("3 {")  # the start files are rejected
    assert lines[1].startswith("0 {")
    assert lines[2].startswith(
        "2 "
    )  # the budget was two, and the last verdict is the environment's
    assert "budget" in said
    assert (found.verdicts, found.usage.verdicts) == (3, 2)
    assert "rule.torch_compute" in (kept / "verdicts.jsonl").read_text()
