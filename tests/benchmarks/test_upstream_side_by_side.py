"""Upstream beside this judge, with a folder that has upstream's interface in its place."""

import json

import pytest

from benchmarks.undefined import UNDEFINED
from benchmarks.upstream_side_by_side import Candidate, main, row_of, table, upstream
from kernelgym.errors import UsageError
from tests.conftest import FakeJudge, FakeTask, verdict_of

# Says what the candidate's text tells it to.
EVALUATION = """
import os

class KernelExecResult:
    def __init__(self, compiled, correctness=False, metadata=None, runtime=-1.0, ref_runtime=-1.0):
        self.compiled, self.correctness, self.metadata = compiled, correctness, metadata or {}
        self.runtime, self.ref_runtime = runtime, ref_runtime

def eval_kernel_against_ref(
    original_model_src, custom_model_src, seed_num=42, num_correct_trials=1, num_perf_trials=10,
    measure_performance=False, timing_method="cuda_event", verbose=False, build_dir=None,
    device=None, backend="cuda", precision=None,
):
    print("chatter on standard output")
    assert "class Model" in original_model_src and os.path.isdir(build_dir) and measure_performance
    if "no compile" in custom_model_src:
        return KernelExecResult(False, metadata={"compilation_error": ValueError("bad")})
    if "retry" in custom_model_src:
        return None
    if "crash" in custom_model_src:
        os._exit(3)
    if "wrong" in custom_model_src:
        return KernelExecResult(True, metadata={"correctness_issue": "Output mismatch"})
    return KernelExecResult(True, True, {"backend": backend}, runtime=0.5, ref_runtime=2.0)
"""
REFERENCE = "class Model: pass"


@pytest.fixture(scope="module", params=["src/kernelbench", "src"])
def checkout(request, tmp_path_factory):
    """Both layouts that upstream has had."""
    root = tmp_path_factory.mktemp("checkout")
    package = root / request.param
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "eval.py").write_text(EVALUATION)
    return root


@pytest.mark.parametrize(
    ("text", "verdict", "why"),
    [
        ("right", "correct", ""),
        ("wrong", "incorrect", "correctness_issue: Output mismatch"),
        ("no compile", "compile_error", "compilation_error: bad"),
        ("retry", "no result", "it asks to be run again"),
        ("crash", "failed", "exit status 3: chatter on standard output"),
    ],
)
def test_what_upstream_says_is_read(checkout, text, verdict, why):
    answer = upstream(checkout, REFERENCE, text)
    assert (answer["verdict"], answer["why"]) == (verdict, why)
    assert answer["seconds"] > 0
    if verdict == "correct":
        assert (answer["candidate"], answer["eager"]) == (0.0005, 0.002)
        assert answer["metadata"] == {"backend": "cuda"}


def test_a_folder_without_it_is_named(tmp_path):
    answer = upstream(tmp_path, REFERENCE, "right")
    assert answer["verdict"] == "failed"
    assert f"expected a KernelBench checkout, got {tmp_path}" in answer["why"]


def test_a_hang_ends_at_its_limit(checkout):
    answer = upstream(checkout, REFERENCE, "right", timeout=0.01)
    assert answer == {"verdict": "failed", "seconds": 0.01, "why": "not finished in 0.01 s"}


class Evaluating(FakeJudge):
    def evaluate(self, task, workspace):
        if "fault!" in workspace:
            return super().evaluate(FakeTask(), type("W", (), {"files": {"f": workspace}}))
        return verdict_of(eager=(2.0, 1.9, 2.1))


def test_rows_give_reasons_only_where_verdicts_differ():
    theirs = {"verdict": "correct", "seconds": 40.0, "candidate": 5e-4, "eager": 2e-3}
    same = row_of(Candidate("a", "L1/19", ""), Evaluating(), theirs)
    assert same.agree
    assert (same.our_speedup, same.their_speedup) == (2.0, 4.0)
    other = {"verdict": "incorrect", "seconds": 40.0, "why": "Output mismatch"}
    differs = row_of(Candidate("b", "L1/19", ""), Evaluating(), other)
    fault = row_of(Candidate("c", "L1/19", "fault!"), Evaluating(), other)
    assert (fault.ours, fault.our_reason) == ("fault", "the compiler is missing")
    text = table([same, differs, fault])
    assert "| a | L1/19 | correct | correct | 40 |" in text
    assert "\nb:\n  KernelBench: incorrect: Output mismatch\n  kernelgym: correct" in text
    assert "\na:" not in text


def test_the_command_judges_and_writes(checkout, tmp_path, capsys):
    file, found = tmp_path / "zeros.py", tmp_path / "rows.json"
    file.write_text("import torch  # ModelNew is missing, and nothing is built\n")
    arguments = ["--kernelbench", str(checkout), "--device", "cpu", "--size", "small"]
    assert main([*arguments, "--candidate", "L1/19", str(file), "--json", str(found)]) == 0
    (row,) = json.loads(found.read_text())
    assert (row["theirs"], row["ours"], row["agree"]) == ("correct", "runtime_error", False)
    assert "kernelgym: runtime_error: import." in capsys.readouterr().out
    with pytest.raises(UsageError, match="--kernelbench: expected a folder"):
        main(["--kernelbench", str(tmp_path / "nothing")])


def test_what_is_undefined_is_written_out():
    assert len(UNDEFINED) >= 20
    assert all("load_inline" in text for text in UNDEFINED.values())
