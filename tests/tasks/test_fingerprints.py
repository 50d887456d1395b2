"""Every task against its recorded fingerprints, layout, FLOPs and bytes."""

import pytest
import torch

from kernelgym import tasks

from . import fingerprints

# Reduced models of more than this many state values take from one to twenty seconds a case.
LARGE = 3_000_000


def _marks(task_id):
    size = sum(torch.Size(shape).numel() for _, shape, _ in fingerprints.fill_rules(task_id))
    return [pytest.mark.slow] if size > LARGE else []


ALL = [pytest.param(task_id, marks=_marks(task_id)) for task_id in tasks.ids()]
EACH = [
    pytest.param(i, marks=[pytest.mark.slow] if i in fingerprints.DEEP else []) for i in tasks.ids()
]
CASES = [
    pytest.param(task_id, variant, mode, marks=_marks(task_id))
    for task_id in tasks.ids()
    for variant, mode in fingerprints.cases(task_id)
]


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_the_catalogue_is_complete():
    assert [len(tasks.ids(level)) for level in (1, 2, 3)] == [100, 100, 50]
    assert list(tasks.ids()) == fingerprints.ids()


@pytest.mark.parametrize(("task_id", "variant", "mode"), CASES)
def test_output(task_id, variant, mode):
    assert fingerprints.problems(task_id, variant, mode) == []


@pytest.mark.parametrize("task_id", tasks.ids())
def test_layout(task_id):
    assert fingerprints.layout_problems(task_id) == []


@pytest.mark.parametrize("task_id", EACH)
def test_facts(task_id):
    assert fingerprints.fact_problems(task_id) == []


@pytest.mark.parametrize("task_id", ALL)
def test_seeded_initialisation(task_id):
    assert fingerprints.initialisation_problems(task_id) == []


def test_the_comparison_sees_a_wrong_operator(monkeypatch):
    right = tasks.get("L1/21").text
    wrong = tasks.Task("L1/21", 1, 21, "Sigmoid", "wrong.py", right.replace("sigmoid", "tanh"))
    monkeypatch.setattr(tasks, "get", lambda task_id: wrong)
    found = fingerprints.problems("L1/21", "recorded", "train_and_eval")
    assert any("mean" in text for text in found)
    assert any("sample 15" in text for text in found)


def test_the_layout_check_sees_a_wrong_default(monkeypatch):
    right = tasks.get("L1/20").text
    wrong = tasks.Task("L1/20", 1, 20, "LeakyReLU", "wrong.py", right.replace("0.01", "0.02"))
    monkeypatch.setattr(tasks, "get", lambda task_id: wrong)
    assert fingerprints.layout_problems("L1/20") == [
        "default of negative_slope: expected 0.01, got 0.02"
    ]
