"""The ground truth of the mutation benchmark, and one fault's way through all of it."""

import argparse
import dataclasses
import json

import pytest

from benchmarks import mutation
from benchmarks.faults import Fault
from benchmarks.probe import Prober
from kernelgym.errors import UsageError
from kernelgym.tasks import get
from kernelgym.toolchain.service import BuildService
from tests.honest.candidates import Control
from tests.judge.candidates import RELU_KERNEL, candidate

GOOD = {"model_new.py": candidate()}
# Right on [0, 1), where upstream draws, and nowhere below.
IDENTITY = {"model_new.py": candidate(RELU_KERNEL.replace("fmaxf(x[i], 0.0f)", "x[i]"))}
FEWER = {
    "model_new.py": candidate(RELU_KERNEL.replace("i < n", "i < 16 * 771 && i < n - (n < 999)"))
}


@pytest.fixture(scope="module")
def prober():
    prober = Prober(BuildService())
    yield prober
    prober.close()


def test_what_is_right_has_no_effect(prober):
    effect = prober.effect(get("L1/19"), GOOD, GOOD)
    assert (effect.differs, effect.elsewhere, effect.upstream) == (False, False, False)


def test_what_upstreams_inputs_do_not_show_is_seen(prober):
    effect = prober.effect(get("L1/19"), IDENTITY, GOOD)
    assert effect.differs
    assert effect.where.startswith("U[-1,1), order 0: ")
    assert not effect.upstream


def test_what_is_wrong_at_other_shapes_only_is_told_apart(prober):
    effect = prober.effect(get("L1/19"), FEWER, GOOD)
    assert (effect.differs, effect.elsewhere) == (False, True)


def test_an_original_that_does_not_run_is_no_measure(prober):
    broken = {"model_new.py": "import torch\n"}
    with pytest.raises(UsageError, match="expected a correct original"):
        prober.effect(get("L1/19"), GOOD, broken)


def test_a_run_judges_what_is_new_and_goes_on(tmp_path, monkeypatch, capsys):
    text = GOOD["model_new.py"]
    at = text.index("fmaxf")
    fault = Fault("relu", "function", "model_new.py", at, at + 5, "fminf", 1, "fmaxf -> fminf")
    pair = Control("relu", "L1/19", GOOD), fault
    monkeypatch.setattr(mutation, "chosen", lambda count: [pair])
    records = tmp_path / "records.jsonl"
    options = argparse.Namespace(
        records=records, per_kernel=1, device="cpu", workers=1, seconds=60.0, again=None
    )
    assert mutation.run(options) == 0
    (record,) = mutation.read_records(records).values()
    assert (record.outcome, record.reason, record.differs) == ("incorrect", "check.constant", True)
    assert record.upstream
    assert mutation.run(options) == 0
    assert "1 faults in 24 kernels, 0 to judge" in capsys.readouterr().out
    monkeypatch.setattr(mutation, "still_there", lambda records, controls: [pair])
    monkeypatch.setattr(Prober, "effect", None)  # what it found is kept
    options.again = "incorrect"
    assert mutation.run(options) == 0
    assert "1 faults in 24 kernels, 0 to judge" in capsys.readouterr().out
    records.write_text(json.dumps(dataclasses.asdict(dataclasses.replace(record, commit="older"))))
    assert mutation.run(options) == 0
    assert "1 faults in 24 kernels, 1 to judge" in capsys.readouterr().out
    (again,) = mutation.read_records(records).values()
    assert (again.commit, again.differs) == (record.commit, True)
    found = tmp_path / "found.json"
    assert mutation.main(["report", str(records), "--json", str(found)]) == 0
    assert json.loads(found.read_text())["kinds"]["function"]["found"] == 1
