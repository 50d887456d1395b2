"""Repair: fixes for what verdicts say, and an agent that keeps what gets further."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kernelgym.agents.fixes import propose
from kernelgym.agents.repair import Repair
from kernelgym.edits import parse
from kernelgym.errors import UsageError
from kernelgym.judge.verdict import Correctness, Diagnostic, Outcome, Verdict
from kernelgym.runner import run_episode
from kernelgym.workspace import Workspace

KERNEL = """\
#include <torch/extension.h>
__global__ void add(const float* x, float* y, int n) {
    __shared__ float part[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float best = 0.0f;
    for (int k = 0; k < n; ++k) best = fmaxf(best, x[k]);
    part[threadIdx.x] = best
    y[i] = part[31 - threadIdx.x];
}
"""
FILE = "model_new.py"


def error(line: int, column: int, text: str, tool: str = "g++", code: str = "") -> Diagnostic:
    return Diagnostic(FILE, line, column, "error", text, "", tool, code)


def changed_line(fix: Any, before: str) -> list[str]:
    old, new = before.splitlines(), fix.text.splitlines()
    return [line.strip() for line in new if line not in old]


CASES = [
    (
        KERNEL,
        Outcome.COMPILE_ERROR,
        "build.compile",
        error(8, 5, "expected \u2018;\u2019 before \u2018y\u2019"),
        "part[threadIdx.x] = best;",
    ),
    (
        KERNEL.replace("= best\n", "= bset;\n"),
        Outcome.COMPILE_ERROR,
        "build.compile",
        error(7, 25, "'bset' was not declared in this scope; did you mean 'best'?"),
        "part[threadIdx.x] = best;",
    ),
    (
        KERNEL.replace("threadIdx.x;", "theadIdx.x;"),
        Outcome.COMPILE_ERROR,
        "build.compile",
        error(4, 45, 'identifier "theadIdx" is undefined', "nvcc"),
        "int i = blockIdx.x * blockDim.x + threadIdx.x;",
    ),
    (
        KERNEL.replace("0.0f;", "-FLT_MAX;"),
        Outcome.COMPILE_ERROR,
        "build.compile",
        error(5, 19, "\u2018FLT_MAX\u2019 was not declared in this scope"),
        "#include <cfloat>",
    ),
    (
        "class ModelNew(nn.Module)\n    pass\n",
        Outcome.RUNTIME_ERROR,
        "import.error",
        error(1, 26, "SyntaxError: expected ':'", "python"),
        "class ModelNew(nn.Module):",
    ),
    (
        "x = torch.empty(1)\n",
        Outcome.RUNTIME_ERROR,
        "import.error",
        error(1, 0, "NameError: name 'torch' is not defined", "python"),
        "import torch",
    ),
    (
        KERNEL,
        Outcome.INCORRECT,
        "race.shared",
        error(
            8,
            0,
            "read of part; conflicts with the write by thread 1 in line 7",
            "emulator",
            "race.shared",
        ),
        "__syncthreads();",
    ),
    (
        "y[row] += x[i];\n",
        Outcome.INCORRECT,
        "race.global",
        error(1, 0, "two writers", "emulator", "race.global"),
        "atomicAdd(&y[row], x[i]);",
    ),
    (
        KERNEL.replace("= best\n", "= best;\n"),
        Outcome.RUNTIME_ERROR,
        "memory.out_of_bounds",
        error(8, 0, "write past the end", "emulator", "memory.out_of_bounds"),
        "if (i < n) y[i] = part[31 - threadIdx.x];",
    ),
    (
        KERNEL,
        Outcome.INCORRECT,
        "check.values",
        None,
        "float best = -INFINITY;",
    ),
    (
        "relu<<<n / 256, 256>>>(x, y, n);\n",
        Outcome.INCORRECT,
        "check.tail",
        None,
        "relu<<<(n + 256 - 1) / 256, 256>>>(x, y, n);",
    ),
    (
        "for (int i = tid; i < n - 1; i += 32) y[i] = x[i];\n",
        Outcome.INCORRECT,
        "check.tail",
        None,
        "for (int i = tid; i < n; i += 32) y[i] = x[i];",
    ),
    (
        "int rows = x.size(0), cols = x.size(0);\n",
        Outcome.INCORRECT,
        "check.values",
        None,
        "int rows = x.size(0), cols = x.size(1);",
    ),
    (
        "y[i] = x[i] > 0.f ? x[i] : 1.001f;\n",
        Outcome.INCORRECT,
        "check.values",
        None,
        "y[i] = x[i] > 0.f ? x[i] : 1.0f;",
    ),
    (
        "auto out = x;\n",
        Outcome.INCORRECT,
        "check.input_mutated",
        None,
        "auto out = torch::empty_like(x);",
    ),
    (
        "class ModelNew(nn.Module):\n    def forward(self, x):\n        return ops.f(x.t())\n",
        Outcome.INCORRECT,
        "check.values",
        None,
        "x = x.contiguous()",
    ),
]


@pytest.mark.parametrize(
    ("text", "outcome", "reason", "diagnostic", "wanted"),
    CASES,
    ids=[f"{case[2]}-{case[4][:24]}" for case in CASES],
)
def test_the_likeliest_fixes(
    make_verdict: Any,
    text: str,
    outcome: Outcome,
    reason: str,
    diagnostic: Diagnostic | None,
    wanted: str,
) -> None:
    diagnostics = () if diagnostic is None else (diagnostic,)
    verdict = make_verdict(outcome, reason=reason, diagnostics=diagnostics)
    fixes = propose({FILE: text}, verdict, "return torch.max(x) + 1.0")
    offered = [wanted in changed_line(fix, text) for fix in fixes[:3]]
    assert any(offered), [fix.says for fix in fixes[:6]]


def test_every_fix_changes_something_and_none_comes_twice(make_verdict: Any) -> None:
    verdict = make_verdict(Outcome.INCORRECT, reason="check.values")
    fixes = propose({FILE: KERNEL}, verdict, "softmax")
    texts = [fix.text for fix in fixes]
    assert len(texts) == len(set(texts)) > 3
    assert KERNEL not in texts
    weights = [fix.weight for fix in fixes]
    assert weights == sorted(weights, reverse=True)


class Script:
    """A judge that answers by the text: what the best so far misses is said of it."""

    def __init__(self, make_verdict: Any) -> None:
        self.make = make_verdict

    def verdict(self, text: str) -> Verdict:
        if "= best;" not in text:
            problem = error(8, 5, "expected ';' before 'y'")
            return self.make(Outcome.COMPILE_ERROR, reason="build.compile", diagnostics=(problem,))
        if "-INFINITY" not in text:
            check = Correctness(5, 0, bad_elements=10, elements=20)
            return self.make(Outcome.INCORRECT, reason="check.values", correctness=check)
        return self.make()


def play(agent: Repair, judge: Script, start: str, verdicts: int) -> list[Verdict]:
    workspace = Workspace({FILE: start}, reference="torch.max(x)")
    info: dict[str, Any] = {"workspace": workspace, "verdict": None, "edit_error": ""}
    agent.reset(info)
    seen = []
    for _ in range(verdicts):
        script = parse(agent({}, info))
        if script.submits:
            break
        info["workspace"] = script.apply(info["workspace"])
        info["verdict"] = judge.verdict(info["workspace"].files[FILE])
        seen.append(info["verdict"])
    return seen


def test_it_keeps_what_gets_further(make_verdict: Any) -> None:
    agent = Repair()
    seen = play(agent, Script(make_verdict), KERNEL, 8)
    outcomes = [verdict.outcome for verdict in seen]
    assert outcomes[0] is Outcome.COMPILE_ERROR
    assert outcomes[1] is Outcome.INCORRECT
    assert outcomes[-1] is Outcome.CORRECT
    # Once it runs, no attempt goes back to the text that did not compile.
    assert "= best;" in agent._state.files[FILE]
    assert len(outcomes) <= 5


def test_it_gives_up_on_its_best(make_verdict: Any) -> None:
    class Hopeless(Script):
        def verdict(self, text: str) -> Verdict:
            return dataclasses.replace(super().verdict("= best;"))

    agent = Repair(patience=3)
    seen = play(agent, Hopeless(make_verdict), KERNEL, 50)
    assert len(seen) == 4
    assert agent.last_change


def test_it_starts_from_a_file_and_plays_in_the_environment(make_env: Any, tmp_path: Any) -> None:
    path = tmp_path / "mine.py"
    path.write_text("# fast=2.0 \n")
    result = run_episode(make_env(), Repair(start=str(path)))
    assert result.solved
    assert (len(result.turns), result.terminated) == (2, True)
    with pytest.raises(UsageError):
        Repair(start=str(tmp_path / "none.py"))
    with pytest.raises(UsageError, match="patience"):
        Repair(patience=0)
