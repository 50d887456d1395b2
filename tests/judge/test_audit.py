"""The audit: trivial answers, records, and what the catalogue's records say."""

import json

import pytest
import torch

from kernelgym import tasks
from kernelgym.config import JudgeConfig
from kernelgym.errors import RecordError, UsageError
from kernelgym.judge import audit as auditing
from kernelgym.judge import reference as reference_module
from kernelgym.judge.audit import KNOWN_WEAK, RECORDS, audit, audit_all, clean_ids, load, merge
from kernelgym.judge.reference import Reference
from kernelgym.judge.salt import Salt
from kernelgym.judge.trivial import ANSWERS, Case, answers

UNSCORABLE = {"L2/80", "L2/83", "L3/28"}


def found(task_id, protocol, tolerance=None, **config):
    config = JudgeConfig(device="cpu", seed=3, **config)
    record = audit(tasks.get(task_id), "small", (protocol,), config)
    return {name.split(":")[0] for name in record.passing(protocol, tolerance)}


def case(right, inputs, rehearsed, rehearsed_inputs, task="x", run=None):
    names = tuple("abc"[: len(inputs)])
    return Case(task, names, inputs, right, right.dtype, rehearsed_inputs, rehearsed, run)


def made(one_case, name):
    return dict(answers(one_case, lambda known: known == name))


def test_an_affine_map_is_learnt_from_the_rehearsal():
    x, other = torch.rand(30, 40), torch.rand(30, 40)
    one = case(3 * x - 1, [x], 3 * other - 1, [other])
    torch.testing.assert_close(made(one, "affine")["affine:a"], 3 * x - 1)
    torch.testing.assert_close(made(one, "input")["input:a"], x)
    constant = made(one, "constant")["constant"]
    assert constant.shape == (30, 40)
    assert constant[0, 0].item() == pytest.approx((3 * other - 1).mean().item(), rel=1e-6)
    assert torch.equal(made(one, "other_output")["other_output"], 3 * other - 1)


@pytest.mark.parametrize("keepdim", [False, True])
def test_part_of_a_reduction_stands_for_the_whole(keepdim):
    x, other = torch.randn(2, 50, 800)
    one = case(x.sum(1, keepdim), [x], other.sum(1, keepdim), [other])
    (value,) = made(one, "partial_mean").values()
    assert value.shape == one.shape
    seen = torch.corrcoef(torch.stack([value.flatten(), x[:, :100].sum(1)]))[0, 1]
    assert abs(seen) > 0.999


def test_answers_that_do_part_of_the_work():
    right = torch.arange(32.0).reshape(2, 16) + 1
    one = case(right, [], right, [])
    rows = made(one, "one_slice")
    assert torch.equal(rows["one_slice:0"], right[:1].expand(2, 16))
    assert torch.equal(rows["one_slice:1"], right[:, :1].expand(2, 16))
    head = made(one, "first_columns")["first_columns"]
    assert torch.equal(head[:, :2], right[:, :2])
    assert (head[:, 2:] == 0).all()


def test_the_head_of_the_inputs_is_kept_and_the_rest_is_a_mean():
    x, other = torch.rand(4, 16), torch.rand(4, 16)
    one = case(x, [x], other, [other], run=lambda values: values[0])
    value = made(one, "head_of_inputs")["head_of_inputs"]
    assert torch.equal(value[:, :2], x[:, :2])
    torch.testing.assert_close(value[:, 2:], other.mean().expand(4, 14))


def test_whole_numbers_get_answers_too():
    right, other = torch.tensor([[3], [4]]), torch.tensor([[5], [6]])
    one = case(right, [], other, [], run=lambda values: right)
    for _, value in answers(one, lambda name: True):
        assert value.dtype == torch.int64
        assert value.shape == (2, 1)


@pytest.mark.parametrize(
    ("task_id", "protocol", "tolerance", "passing"),
    [
        ("L1/19", "kernelbench", 1e-4, {"input", "affine"}),
        ("L1/19", "audited", None, set()),
        ("L1/90", "kernelbench", 1e-4, {"first_columns", "head_of_inputs"}),
        ("L1/90", "audited", None, set()),
        ("L1/5", "audited", None, set()),  # a·x + b is the task there
        ("L1/26", "cuda_agent", 1e-2, set()),
        ("L1/51", "kernelbench", 1e-4, set()),
    ],
)
def test_what_is_found(task_id, protocol, tolerance, passing):
    assert found(task_id, protocol, tolerance) == passing


def test_losses_on_uniform_values_have_a_closed_form():
    for task_id in ("L1/94", "L1/96", "L1/100"):
        assert "closed_form" in found(task_id, "kernelbench", 1e-2)
        assert found(task_id, "audited") == set()


def test_a_degenerate_task_is_found_under_every_rule():
    record = audit(tasks.get("L2/80"), "small")
    assert [(r.protocol, r.tolerance) for r in record.results] == [
        ("audited", None),
        ("kernelbench", 1e-4),
        ("kernelbench", 1e-2),
        ("cuda_agent", 1e-2),
    ]
    for result in record.results:
        assert {"zeros", "constant", "other_output"} <= set(result.passing)


def test_one_draw_is_easier_than_five():
    # On the first draw, U[0,1), ReLU is the identity; the later draws tell.
    assert found("L1/19", "audited", draws=1) == {"input", "affine"}
    assert found("L1/19", "audited", draws=2) == set()


def test_records_are_kept_resumed_and_merged(tmp_path):
    path = tmp_path / "audit.json"
    seen = []
    chosen = [tasks.get("L1/19"), tasks.get("L1/22")]
    audit_all(chosen[:1], "small", path, progress=seen.append)
    audit_all(chosen, "small", path, progress=seen.append)
    assert [record.task for record in seen] == ["L1/19", "L1/22"]
    records = load(path)
    assert records["L1/19", "small"] == seen[0]
    other = tmp_path / "other.json"
    assert merge(path, other) == 2
    assert load(other) == records


def test_a_task_that_fails_is_recorded_and_tried_again(tmp_path):
    good = tasks.get("L1/19")
    broken = tasks.Task("L1/19", 1, 19, "ReLU", "x.py", good.text.replace("relu(x)", "relu(x, 1)"))
    path = tmp_path / "audit.json"
    record = audit_all([broken], "small", path)["L1/19", "small"]
    assert record.results == ()
    assert "x.py: Model" in record.error
    assert audit_all([good], "small", path)["L1/19", "small"].error == ""
    failed = tmp_path / "failed.json"
    audit_all([broken], "small", failed)
    assert merge(failed, path) == 0  # no error in place of a result
    assert load(path)["L1/19", "small"].error == ""


def test_a_file_that_is_no_record(tmp_path):
    path = tmp_path / "audit.json"
    path.write_text('{"records": [{"task": 3}]}')
    with pytest.raises(RecordError, match=r"audit\.json: expected a file of audit records"):
        load(path)
    with pytest.raises(RecordError, match="expected a file of audit records"):
        load(tmp_path / "absent.json")


def test_the_command_line(tmp_path, capsys):
    path = tmp_path / "audit.json"
    assert auditing.main(["--tasks", "L1/22", "L1/19", "--out", str(path)]) == 0
    out = capsys.readouterr().out
    assert "2 tasks, 0 failed, 0 weak under audited" in out
    assert "kernelbench 0.0001: input:x, affine:x" in out
    assert auditing.main(["--merge", str(path), "--out", str(tmp_path / "b.json")]) == 0
    assert auditing.main(["--tasks", "L1/1000", "--out", str(path)]) == 2
    assert "expected a task id" in capsys.readouterr().err


def test_the_catalogue_is_audited_and_holds_under_audited():
    records = load()
    assert json.loads(RECORDS.read_text())["answers"] == list(ANSWERS)
    for task_id in tasks.ids():
        assert records[task_id, "small"].error == ""
    weak = {task for (task, _), r in records.items() if not r.error and r.passing("audited")}
    assert weak == UNSCORABLE
    for task_id in UNSCORABLE:
        assert tasks.get(task_id).judge_statement("UNSCORABLE", "")


def test_the_clean_set():
    clean = clean_ids()
    assert set(tasks.ids()) - set(clean) == UNSCORABLE
    upstream = clean_ids("kernelbench")
    assert set(upstream) < set(clean)
    assert "L1/19" not in upstream
    with pytest.raises(UsageError, match="protocol: expected one of"):
        clean_ids("upstream")


def test_the_reported_tasks():
    assert len(set(KNOWN_WEAK)) == 48
    assert set(KNOWN_WEAK) < set(tasks.ids())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("task_id", tasks.ids())
def test_nothing_trivial_passes_whatever_the_salt(task_id, seed):
    record = audit(tasks.get(task_id), "small", ("audited",), JudgeConfig(device="cpu", seed=seed))
    assert bool(record.passing("audited")) == (task_id in UNSCORABLE)


@pytest.mark.parametrize("task_id", ["L1/16", "L2/75", "L3/38"])
def test_the_oracle_in_slices(task_id, monkeypatch):
    task = tasks.get(task_id)
    config = JudgeConfig(device="cpu", seed=0)
    reference = Reference(task, "small", config, Salt.make(0, task_id), torch.device("cpu"))
    inputs = reference.inputs(1)
    (whole,) = reference.expected(inputs, 1)
    monkeypatch.setattr(reference_module, "_PASS_BYTES", reference.facts.memory_bytes / 2.5)
    calls = []
    forward = Reference._forward

    def counted(self, model, values, draw):
        calls.append(values)
        return forward(self, model, values, draw)

    monkeypatch.setattr(Reference, "_forward", counted)
    (sliced,) = reference.expected(inputs, 1)
    assert len(calls) > 2
    torch.testing.assert_close(sliced.value, whole.value, rtol=1e-9, atol=1e-9)


def test_a_task_may_ask_for_evaluation_mode():
    task = tasks.get("L3/24")
    for protocol, train in (("audited", False), ("kernelbench", True), ("cuda_agent", False)):
        config = JudgeConfig(device="cpu", seed=0, protocol=protocol)
        made_reference = Reference(
            task, "small", config, Salt.make(0, task.id), torch.device("cpu")
        )
        assert made_reference.train == train
