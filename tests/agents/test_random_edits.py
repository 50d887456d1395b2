"""Random edits: seeded, some valid, some not, and the environment survives them."""

import pytest

from kernelgym.agents.random_edits import RandomEdits
from kernelgym.edits import parse
from kernelgym.errors import EditError, UsageError
from kernelgym.workspace import Workspace

TEXT = (
    "import torch\n\n\nclass ModelNew:\n    size = 4\n    def forward(self, x):\n        return x\n"
)


def texts(count, **arguments):
    agent = RandomEdits(**arguments)
    info = {"workspace": Workspace({"model_new.py": TEXT})}
    return [agent({}, info) for _ in range(count)]


def test_a_seed_gives_a_sequence():
    assert texts(50, seed=1) == texts(50, seed=1)
    assert texts(50, seed=1) != texts(50, seed=2)


def test_some_apply_and_some_do_not():
    applied = refused = 0
    workspace = Workspace({"model_new.py": TEXT})
    for text in texts(200, seed=3, junk=0.5):
        try:
            applied += parse(text).apply(workspace) != workspace
        except EditError:
            refused += 1
    assert applied > 40
    assert refused > 40


def test_without_junk_nearly_all_apply():
    workspace = Workspace({"model_new.py": TEXT})
    refused = 0
    for text in texts(100, seed=4, junk=0.0):
        try:
            parse(text).apply(workspace)
        except EditError:
            refused += 1
    assert refused <= 10  # a passage that stands twice


def test_it_submits_as_often_as_told():
    assert set(texts(10, submit=1.0)) == {"submit\n"}


def test_shares_are_shares():
    with pytest.raises(UsageError, match="junk"):
        RandomEdits(junk=2)
