"""Tasks from a checkout, data sets, single files and lines of JSON: all parsed, none run."""

import json

import pytest

from kernelgym import tasks
from kernelgym.errors import TaskFormatError, UsageError
from kernelgym.tasks import records

PROGRAM = """\
import torch
from torch import nn

raise SystemExit("a task that is read must not run")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.rand(4, 4)]


def get_init_inputs():
    return []
"""
BROKEN = "class Model:\n    def forward(self, x):\n        return x\n"


def kernelbench_row(number, level=1, code=PROGRAM):
    return {"code": code, "level": level, "name": f"{number}_Name{number}", "problem_id": number}


def ops_row(ops, code=PROGRAM):
    return {"ops": ops, "data_source": f"torch#{len(ops)}", "code": code}


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_split(folder, split, rows):
    """A split as the Hub stores it."""
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pytest.importorskip("pyarrow").Table.from_pylist(rows)
    (folder / "data").mkdir(parents=True, exist_ok=True)
    parquet.write_table(table, folder / "data" / f"{split}-00000-of-00001.parquet")


@pytest.fixture(autouse=True)
def _private_cache(tmp_path, monkeypatch):
    """Keeps the `datasets` library's cache, and its warnings, out of the way."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    datasets.disable_progress_bars()


def test_a_checkout_is_read_in_order_and_what_is_no_task_is_named(tmp_path):
    for level, name, text in (
        (1, "19_ReLU.py", PROGRAM),
        (1, "2_Standard_matrix_multiplication.py", PROGRAM),
        (2, "1_Conv.py", PROGRAM),
        (2, "5_Broken.py", BROKEN),
        (2, "notes.md", "# no task"),
    ):
        folder = tmp_path / "KernelBench" / f"level{level}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    loaded = tasks.load(tmp_path)
    assert [task.id for task in loaded] == [
        "kernelbench/L1/2",
        "kernelbench/L1/19",
        "kernelbench/L2/1",
    ]
    assert loaded[1].name == "19_ReLU"
    (rejected,) = loaded.rejected
    assert rejected.where.endswith("5_Broken.py")
    assert "got no def get_inputs, no def get_init_inputs" in rejected.message
    assert len(tasks.load(tmp_path / "KernelBench")) == 3


def test_kernelbench_as_a_data_set(tmp_path, monkeypatch):
    folder = tmp_path / "ScalingIntelligence" / "KernelBench"
    write_split(folder, "level_1", [kernelbench_row(1), kernelbench_row(2, code=BROKEN)])
    write_split(folder, "level_2", [kernelbench_row(1, level=2)])
    loaded = tasks.load(folder)
    assert [task.id for task in loaded] == ["kernelbench/L1/1", "kernelbench/L2/1"]
    assert loaded[0].name == "1_Name1"
    assert loaded.rejected[0].where.endswith("[level_1:1]")
    # By its name on the Hub: the library is asked for that name, and gives the same rows.
    import datasets

    asked = []
    local = datasets.load_dataset
    monkeypatch.setattr(datasets, "load_dataset", lambda n: asked.append(n) or local(str(folder)))
    monkeypatch.chdir(tmp_path.parent)
    hub = tasks.load("ScalingIntelligence/KernelBench")
    assert asked == ["ScalingIntelligence/KernelBench"]
    assert [task.id for task in hub] == [task.id for task in loaded]
    assert hub.rejected[0].where == "ScalingIntelligence/KernelBench[level_1:1]"


def test_a_data_set_that_cannot_be_reached(monkeypatch):
    import datasets

    def fail(name):
        raise ConnectionError("offline")

    monkeypatch.setattr(datasets, "load_dataset", fail)
    with pytest.raises(UsageError, match="expected a data set that can be read, got: offline"):
        tasks.load("ScalingIntelligence/KernelBench")


def test_cuda_agent_ops_as_a_data_set(tmp_path):
    rows = [
        ops_row(["nn.Conv2d", "nn.ReLU"]),
        ops_row(["torch.sum"]),
        {**ops_row([]), "code": None},
    ]
    write_split(tmp_path / "CUDA-Agent-Ops-6K", "train", rows)
    loaded = tasks.load(tmp_path / "CUDA-Agent-Ops-6K")
    assert [task.id for task in loaded] == [
        "CUDA-Agent-Ops-6K/train/0",
        "CUDA-Agent-Ops-6K/train/1",
    ]
    assert loaded[0].name == "Conv2d_ReLU"
    assert "expected the columns code and either" in loaded.rejected[0].message


def test_a_parquet_file(tmp_path):
    write_split(tmp_path, "train", [ops_row(["torch.sum"])])
    assert len(tasks.load(tmp_path / "data" / "train-00000-of-00001.parquet")) == 1


def test_a_file_of_python(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(PROGRAM)
    (task,) = tasks.load(path)
    assert (task.id, task.text) == ("mine", PROGRAM)


def test_lines_of_json_are_our_own_records_or_rows_of_a_data_set(tmp_path):
    rows = [
        {"id": "a", "name": "A", "text": PROGRAM},
        kernelbench_row(7),
        ops_row("['torch.sum', 'nn.GELU']"),
        {"id": "a", "text": PROGRAM},
        {"id": "b"},
        {"id": "c", "text": PROGRAM, "unknown": 1},
        {"id": "d", "text": BROKEN},
    ]
    path = write_lines(tmp_path / "tasks.jsonl", rows)
    path.write_text(path.read_text() + "\n{not json\n")
    loaded = tasks.load(path)
    assert [(task.id, task.name) for task in loaded] == [
        ("a", "A"),
        ("kernelbench/L1/7", "7_Name7"),
        ("tasks:3", "sum_GELU"),
        ("c", "c"),
    ]
    where = {int(row.where.rsplit(":", 1)[1]): row for row in loaded.rejected}
    assert sorted(where) == [4, 5, 7, 9]
    assert where[4].reason == "duplicate"
    assert "`text`" in where[5].message
    assert where[9].reason == "format"


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("nowhere", UsageError, "expected a folder, a .py, .jsonl or .parquet file"),
        ("nowhere/tasks.jsonl", UsageError, "got 'nowhere/tasks.jsonl', which is none of them"),
        ("empty", UsageError, "expected a folder with level1, level2"),
        ("empty.jsonl", TaskFormatError, "expected at least one task, got none in 0 row"),
        ("bad.jsonl", TaskFormatError, r"bad\.jsonl:1: expected a task as a JSON object"),
        ("bad.txt", UsageError, "expected a .py, .jsonl or .parquet file, got '.txt'"),
    ],
)
def test_sources_that_cannot_be_read(tmp_path, monkeypatch, source, error, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "bad.jsonl").write_text("[1]\n")
    (tmp_path / "bad.txt").write_text("")
    with pytest.raises(error, match=message):
        tasks.load(source)


def test_a_data_set_without_the_library_says_what_to_install(tmp_path, monkeypatch):
    write_lines(tmp_path / "rows.jsonl", [kernelbench_row(1)])
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(UsageError, match=r"pip install 'kernelgym\[datasets\]'"):
        tasks.load(tmp_path)


def test_records_are_written_and_read_back_by_split(tmp_path):
    written = [
        records.TaskRecord(
            "a", PROGRAM, split="train", operators=("ReLU",), modelled_seconds=0.002
        ),
        records.TaskRecord("b", PROGRAM, split="heldout"),
    ]
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(b"".join(map(records.encode, written)))
    assert list(records.read_records(path)) == written
    assert [task.id for task in records.read_tasks(path)] == ["a", "b"]
    assert [task.id for task in records.read_tasks(path, "heldout")] == ["b"]
    with pytest.raises(UsageError, match=r"expected one that the file has \('heldout', 'train'\)"):
        records.read_tasks(path, "test")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"id": "b", "text"', r"tasks\.jsonl:3: expected a task as a JSON object"),
        (b'{"id": "", "text": ""}', r"tasks\.jsonl:3: id: expected a name"),
        (b'{"id": "a", "text": ""}', r"tasks\.jsonl:3: id: expected a new one, got 'a' again"),
        (b"\xff\xfe", r"tasks\.jsonl:3: "),
    ],
)
def test_a_broken_line_is_named_by_its_number(tmp_path, line, message):
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(records.encode(records.TaskRecord("a", PROGRAM)) + b"\n" + line + b"\n")
    with pytest.raises(TaskFormatError, match=message):
        records.read_tasks(path)
