from __future__ import annotations

import ast
import copy
import pickle
import subprocess

import pytest

from kernelgym.errors import EditError, TaskFormatError
from kernelgym.workspace import Workspace, check_path


def test_the_start_is_the_reference_renamed_and_without_its_inputs(fake_task):
    workspace = Workspace.initial(fake_task, "small")
    text = workspace.files["model_new.py"]
    assert list(workspace.files) == ["model_new.py"]
    assert "class ModelNew(nn.Module):" in text
    assert "super(ModelNew, self).__init__()" in text
    assert "get_inputs" not in text
    assert "get_init_inputs" not in text
    assert "batch_size = 16" in text
    assert text.endswith("batch_size = 16\n")
    ast.parse(text)
    assert workspace.reference == fake_task.source("small")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("class Model: pass", "class ModelNew: pass"),
        ("class Model: x = 'Model'  # Model", "class ModelNew: x = 'Model'  # Model"),
        ("y = zoo.Model, Model, Models", "y = zoo.Model, ModelNew, Models"),
        ("y = Model(Model)", "y = ModelNew(ModelNew)"),
        ("é = Model; ü = Model", "é = ModelNew; ü = ModelNew"),
        ("x = 1\n@wrap\ndef get_inputs():\n    return []\ny = 2", "x = 1\ny = 2"),
    ],
)
def test_renaming_goes_by_tokens(before, after):
    class Source:
        id = "x"

        def source(self, size):
            return before

    assert Workspace.initial(Source(), "small").files["model_new.py"] == after + "\n"


@pytest.mark.parametrize("text", ["def f(:\n", "x = (\n", "x\0", "if 1:\nx", "x = 'a\n", '"""'])
def test_a_reference_that_is_not_python_is_a_task_error(text):
    class Source:
        id = "broken"

        def source(self, size):
            return text

    with pytest.raises(TaskFormatError, match="broken: expected Python"):
        Workspace.initial(Source(), "small")


@pytest.mark.parametrize("path", ["model_new.py", "a/b/c.cuh", "k-1.cu", "x_2+3.hpp", "a.b.inl"])
def test_paths_inside_the_workspace_are_accepted(path):
    assert check_path(path) == path


@pytest.mark.parametrize(
    "path",
    [
        *("../x.py", "/etc/x.py", "a/../x.py", "./x.py", "a//x.py", "x.py/", ".hidden.py", "", "a"),
        *("-o.cu", "a/-x.cu", "x y.cu", "x\0.cu", "x\n.cu", "é.cu", "x.sh", "x.so", "C:\\x.py"),
        *("reference.py", "a" * 300 + ".py", "x.py\n", "~/x.py", "$HOME/x.py"),
    ],
)
def test_other_paths_are_refused(path):
    with pytest.raises(EditError, match=r"path|read-only"):
        check_path(path)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({f"f{i}.cu": "" for i in range(65)}, "at most 64 files, got 65"),
        ({"a.cu": "x" * (2**20 + 1)}, "a.cu: expected at most 1048576 bytes, got 1048577"),
        ({"a.cu": "é" * 2**19 + "x"}, "got 1048577"),
        ({f"f{i}.cu": "x" * 2**20 for i in range(5)}, "in all, got 5242880"),
        ({"a.cu": "ab\0"}, "NUL byte at character 2"),
        ({"a.cu": "ab\udc80"}, "lone surrogate at character 2"),
    ],
)
def test_limits(files, message):
    with pytest.raises(EditError, match=message):
        Workspace(files)


def test_limits_hold_across_snapshots():
    workspace = Workspace({f"f{i}.cu": "x" * 2**20 for i in range(4)})
    with pytest.raises(EditError, match="in all"):
        workspace.with_files({"g.cu": "x"})
    assert len(workspace.with_files({"f0.cu": "x"}).files) == 4


def test_a_snapshot_does_not_change_with_what_it_was_made_from():
    files = {"b.cu": "1", "a.cu": "2"}
    workspace = Workspace(files)
    files["c.cu"] = "3"
    assert list(workspace.files) == ["a.cu", "b.cu"]
    with pytest.raises(TypeError):
        workspace.files["a.cu"] = "9"


def test_hash_is_of_paths_and_texts_alone():
    one = Workspace({"a.cu": "1", "b.cu": "2"}, reference="x")
    assert one.hash == Workspace({"b.cu": "2", "a.cu": "1"}, reference="y").hash
    others = [{"a.cu": "1"}, {"a.cu": "12", "b.cu": ""}, {"a.cu": "2", "b.cu": "1"}]
    assert len({one.hash, *(Workspace(files).hash for files in others)}) == 4
    assert len(one.hash) == 64


def test_equality_ignores_history():
    start = Workspace({"a.cu": "1"})
    there_and_back = start.with_files({"a.cu": "2"}).with_files({"a.cu": "1"})
    assert there_and_back == start
    assert hash(there_and_back) == hash(start)
    assert start != start.with_files({"a.cu": "2"})


def test_history_and_copies():
    first = Workspace({"a.cu": "1"}, reference="r")
    last = first.with_files({"a.cu": "2"}).with_files({"b.cu": "3", "a.cu": None})
    assert [dict(one.files) for one in last.history] == [
        {"a.cu": "1"},
        {"a.cu": "2"},
        {"b.cu": "3"},
    ]
    for twin in (copy.deepcopy(last), pickle.loads(pickle.dumps(last))):
        assert twin == last
        assert twin.reference == "r"
        assert len(twin.history) == 3


def test_deleting_what_is_not_there_is_an_error():
    with pytest.raises(EditError, match=r"cannot delete x\.cu"):
        Workspace({}).with_files({"x.cu": None})


def test_diff_is_one_that_patch_takes(tmp_path):
    before = Workspace({"a.cu": "one\ntwo\nthree", "gone.cu": "x\n"})
    after = Workspace({"a.cu": "one\n2\nthree\n", "new.cu": "\x0cy\n"})
    for path, text in before.files.items():
        (tmp_path / path).write_text(text)
    diff = before.diff(after)
    subprocess.run(["git", "apply", "-"], input=diff.encode(), cwd=tmp_path, check=True)
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == dict(after.files)
    assert before.diff(before) == ""
