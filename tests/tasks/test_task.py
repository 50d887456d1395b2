"""The catalogue, the form of a task file, and what it says when something is wrong."""

import pickle
import re
import subprocess
import sys
import traceback

import pytest
import torch

from kernelgym import tasks
from kernelgym.errors import TaskFormatError, UnknownTaskError, UsageError

FILE = '''"""Scale."""

import torch
from torch import nn

PRESETS = {
    "full": {"rows": 4096, "shape": (3, 5)},
    "small": {"rows": 7, "shape": (3, 5)},
}

# Only for the judge.
LAWS = {"x": ("uniform", 0.5, 2.0)}
SLICE = 0

factor = 2.0


class Model(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        if x.dim() != 3:
            raise ValueError("three dimensions")
        return x * self.factor


def get_inputs():
    return [torch.rand(rows, *shape)]


def get_init_inputs():
    return [factor]
'''


def write(folder, text, name="scale.py"):
    path = folder / name
    path.write_text(text)
    return path


def test_importing_the_catalogue_does_not_import_torch():
    program = (
        "import sys; from kernelgym import tasks; task = tasks.get('L1/19'); task.source('small');"
        "assert task.sizes and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("spelling", ["L1/19", "L1/019", "l1/19", "level1/19", "L1-019", " L1/19 "])
def test_spellings_of_an_id(spelling):
    task = tasks.get(spelling)
    assert (task.id, task.level, task.number, task.name) == ("L1/19", 1, 19, "ReLU")


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("relu", r"did you mean L1/19 \(ReLU\)"),
        ("L1/101", r"L1/1 to L1/100"),
        ("L4/1", r"L3/1 to L3/50"),
        ("L1/0", r"got 'L1/0'"),
        ("", r"such as 'L1/19'"),
        (19, r"got 19"),
    ],
)
def test_an_unknown_id_is_answered_with_what_comes_close(wrong, hint):
    with pytest.raises(UnknownTaskError, match=hint):
        tasks.get(wrong)


def test_an_unknown_level():
    with pytest.raises(UnknownTaskError, match=r"expected one of \[1, 2, 3\], got 4"):
        tasks.ids(4)


@pytest.mark.parametrize("task_id", tasks.ids())
def test_files_are_named_after_their_task(task_id):
    task = tasks.get(task_id)
    number, name = re.fullmatch(r".*/level\d/(\d{3})_(\w+)\.py", task.path).groups()
    assert int(number) == task.number
    assert name.replace("_", "") == re.sub(r"[^a-z0-9]", "", task.name.lower())


@pytest.mark.parametrize("task_id", tasks.ids())
def test_the_source_of_a_task_stands_alone(task_id):
    task = tasks.get(task_id)
    for size in ("small", "medium", "full"):
        source = task.source(size)
        assert not re.search(r"PRESETS|LAWS|SLICE|OUTPUT|WEIGHTS|UNSCORABLE", source)
        assert "\n\n\n\n" not in source
        namespace = {}
        exec(compile(source, "alone.py", "exec"), namespace)
        alone = {name for name in namespace if not name.startswith("__")}
        module = task.module(size)
        assert alone == {name for name in vars(module) if not name.startswith("__")}
        for name in alone:
            if isinstance(namespace[name], (int, float, tuple, list)):
                assert namespace[name] == getattr(module, name)


def test_what_is_for_the_judge_is_not_shown(tmp_path):
    task = tasks.load_file(write(tmp_path, FILE))
    assert "rows = 7\nshape = (3, 5)\n\nfactor = 2.0\n\n\nclass Model" in task.source("small")
    assert "judge" not in task.source("small")


def test_a_module_keeps_the_lines_of_its_file(tmp_path):
    path = write(tmp_path, FILE)
    module = tasks.load_file(path).module("small")
    with pytest.raises(ValueError, match="three dimensions") as caught:
        module.Model(2.0)(torch.ones(2))
    frame = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert frame.filename == str(path)
    assert frame.line == 'raise ValueError("three dimensions")'
    assert module.__name__ not in sys.modules


def test_two_modules_share_nothing(tmp_path):
    task = tasks.load_file(write(tmp_path, FILE))
    small, full = task.module("small"), task.module("full")
    assert (small.rows, full.rows) == (7, 4096)
    small.factor = 3.0
    assert task.module("small").factor == 2.0


def test_inputs_are_made_on_the_device_asked_for(tmp_path):
    module = tasks.load_file(write(tmp_path, FILE)).module("full")
    with torch.device("meta"):
        assert module.get_inputs()[0].device.type == "meta"


def test_a_task_can_be_pickled_after_use():
    task = tasks.get("L1/40")
    task.facts("small")
    copy = pickle.loads(pickle.dumps(task))
    assert copy == task
    assert copy.source("small") == task.source("small")


def test_medium_means_full_where_full_fits():
    task = tasks.get("L1/1")
    assert task.sizes == ("small", "full")
    assert task.source("medium") == task.source("full")


def test_an_unknown_size():
    with pytest.raises(UsageError, match="expected one of small, medium, full, got 'tiny'"):
        tasks.get("L1/1").source("tiny")


def test_a_plain_file_has_one_size(tmp_path):
    plain = (
        FILE[: FILE.index("PRESETS")] + "rows, shape = 4, (2, 2)\n" + FILE[FILE.index("factor") :]
    )
    task = tasks.load_file(write(tmp_path, plain, "mine.py"))
    assert (task.id, task.level, task.sizes) == ("mine", 0, ("full",))
    assert task.source("small") == plain
    assert [spec.shape for spec in task.input_specs("small")] == [(4, 2, 2)]
    assert task.facts("full").slice_dim is None


def test_a_missing_file(tmp_path):
    with pytest.raises(TaskFormatError, match=r"none\.py: expected a readable Python file"):
        tasks.load_file(tmp_path / "none.py")


def test_loading_runs_nothing(tmp_path):
    task = tasks.load_file(write(tmp_path, FILE + "\nraise SystemExit\n"))
    with pytest.raises(SystemExit):
        task.module("small")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("def forward(self, x):", "def forward(self, x", "expected Python source"),
        ("class Model", "class Other", "got no class Model"),
        ("get_inputs", "make_inputs", "got no def get_inputs"),
        ("def get_init_inputs", "def other", "got no def get_init_inputs"),
        ("def forward", "def backward", "Model: expected a method forward"),
        ('{"rows": 7, "shape"', '{"row": 7, "shape"', "small: expected the names rows, shape"),
        ('"small":', '"tiny":', "expected full, small and perhaps medium, got full, tiny"),
        ('"rows": 7', '"rows": 3 + len("abc")', "PRESETS: expected a literal"),
        ('{"x": ("uni', '{"y": ("uni', r"LAWS: expected arguments of forward \(x\), got 'y'"),
        ("SLICE = 0", 'SLICE = "rows"', "SLICE: expected None, a dimension"),
        ("SLICE = 0", 'SLICE = {"x": 1}', "SLICE: expected None, a dimension"),
        ("SLICE = 0", 'WEIGHTS = "random"', "WEIGHTS: expected one of constructed, perturbed"),
        ("SLICE = 0", "OUTPUT = 3", "OUTPUT: expected one of numeric"),
        ("SLICE = 0", "UNSCORABLE = True", "UNSCORABLE: expected the proof"),
    ],
)
def test_a_malformed_file_is_told_what_is_wrong(tmp_path, old, new, message):
    assert old in FILE
    with pytest.raises(TaskFormatError, match=message):
        tasks.load_file(write(tmp_path, FILE.replace(old, new)))


def test_a_null_byte_is_malformed(tmp_path):
    with pytest.raises(TaskFormatError, match="expected Python source"):
        tasks.load_file(write(tmp_path, FILE + "\0"))


@pytest.mark.parametrize(
    ("law", "message"),
    [
        ('("gaussian", 0, 1)', "expected a law, its kind one of mixed, .*got .'gaussian', 0, 1."),
        ('("uniform", 0)', r"expected 2 number\(s\) after 'uniform', got \[0\]"),
        ('("uniform", 0, "high")', r"expected 2 number\(s\)"),
    ],
)
def test_a_malformed_law(tmp_path, law, message):
    task = tasks.load_file(write(tmp_path, FILE.replace('("uniform", 0.5, 2.0)', law)))
    with pytest.raises(TaskFormatError, match=message):
        task.input_specs("small")


def test_what_a_strange_program_computes_keeps_its_domain(tmp_path):
    text = FILE.replace('LAWS = {"x": ("uniform", 0.5, 2.0)}\n', "")
    plain = tasks.load_file(write(tmp_path, text))
    assert [spec.law.kind for spec in plain.input_specs("small")] == ["mixed"]
    text = text.replace("[torch.rand(rows, *shape)]", "[torch.rand(rows, *shape).softmax(-1)]")
    computed = tasks.load_file(write(tmp_path, text))
    assert [spec.law.kind for spec in computed.input_specs("small")] == ["given"]
    (value,) = computed.draw_inputs("small", seed=0, index=3)
    assert torch.allclose(value.sum(-1), torch.ones(7, 3))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("torch.rand(rows", "torch.rand(columns", "get_inputs: expected .*NameError: .*columns"),
        ("x * self.factor", "x * x.sum().item()", "Model: expected to run on tensors without"),
        ("return [torch.rand(rows, *shape)]", "return 5", r"at most 1 values .* got int"),
    ],
)
def test_a_program_that_fails_is_named(tmp_path, old, new, message):
    task = tasks.load_file(write(tmp_path, FILE.replace(old, new)))
    with pytest.raises(TaskFormatError, match=message):
        task.facts("small")


def test_too_many_inputs(tmp_path):
    text = FILE.replace("return [torch", "return [1, torch")
    with pytest.raises(TaskFormatError, match=r"at most 1 values for forward \(x\), got 2"):
        tasks.load_file(write(tmp_path, text)).input_specs("small")
