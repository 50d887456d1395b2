"""The benchmarks of whole batches, on the emulator and small: their code runs, and holds here too."""

import json
import pathlib
import random
import subprocess
import sys

import platformdirs
import pytest

BENCHMARKS = pathlib.Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def module(monkeypatch):
    """Imports a benchmark as a run of it would."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return __import__


def run(script, output, *arguments):
    command = [sys.executable, str(BENCHMARKS / script), *arguments, "--output", str(output)]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return json.loads(output.read_text())


def test_a_fresh_candidate_is_the_same_program_under_other_names(module):
    batches = module("batches")
    text = "#include <torch/extension.h>\nforward_sum_0<<<4, 8>>>(); forward(x); register_forward_x"
    first, second = (batches.fresh(text, random.Random(seed)) for seed in (1, 2))
    assert first != second
    assert "forward_sum_0" not in first
    assert "_sum_0<<<4, 8>>>(); forward(x); register_forward_x" in first


def test_verdicts_are_compared_with_those_measured_alone(module):
    scaling = module("scaling")

    def row(index, low, high, outcome="correct"):
        speedup = [low, (low + high) / 2, high]
        return {"index": index, "task": "t", "outcome": outcome, "reason": "", "speedup": speedup}

    alone = [row(0, 1.0, 1.1), row(1, 2.0, 2.1), row(2, 1.0, 1.1)]
    found = scaling.agreement([row(0, 1.05, 1.2), row(1, 3, 3.1), row(2, 1, 1.1, "timeout")], alone)
    counts = {name: found[name] for name in found if name.endswith(("compared", "apart"))}
    assert (counts["speedups_compared"], counts["speedups_apart"]) == (2, 1)
    assert counts["outcomes_apart"] == 1


@pytest.mark.slow
def test_hostile_candidates_leave_nothing_behind(tmp_path):
    kinds = ["kill_self", "fork_bomb", "output", "illegal_address", "host_hang"]
    arguments = ["--device", "cpu", "--verdicts", "20", "--hostile", "0.5", "--draws", "1"]
    report = run("soak.py", tmp_path / "r.json", *arguments, "--only", *kinds)
    assert report["complete"]
    assert report["broken"] == []
    assert set(kinds) <= set(report["outcomes"])


@pytest.mark.slow
def test_a_batch_on_two_emulators(tmp_path):
    arguments = ["--devices", "cpu", "cpu", "--count", "4", "--wrong", "0.3", "--draws", "1"]
    arguments += ["--cache", str(platformdirs.user_cache_path())]
    report = run("gpu_throughput.py", tmp_path / "r.json", *arguments)
    assert report["complete"]
    assert report["troubles"] == []
    assert report["summary"]["verdicts"] == 4
    assert all(
        name.startswith(("right: correct", "wrong: incorrect"))
        for name in report["summary"]["outcomes"]
    )
