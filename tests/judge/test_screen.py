"""The screen: sure of what it rejects, silent about the rest."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelgym import tasks
from kernelgym.judge.screen import screen
from kernelgym.toolchain.build import SourceFile
from kernelgym.workspace import Workspace


def model(forward, init="pass", prelude=""):
    return (
        "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
        f"{prelude}\n\nclass ModelNew(nn.Module):\n"
        f"    def __init__(self):\n        super().__init__()\n        {init}\n\n"
        f"    def forward(self, x):\n        {forward}\n"
    )


def found(text, ruleset="strict", path="model_new.py"):
    return screen([SourceFile(path, text)], ruleset)


@pytest.mark.parametrize(
    "text",
    [
        model("return torch.relu(x)"),
        model("return F.softmax(x, dim=1)"),
        model("return x @ x"),
        model("return self.fc(x)", init="self.fc = nn.Linear(3, 3)"),
        model("return torch.nn.functional.gelu(x)"),
        model("return mm(x, x)", prelude="from torch import matmul as mm"),
        model("return T.einsum('ij->i', x)", prelude="import torch as T"),
    ],
)
def test_torch_at_work_in_forward_is_rejected_with_its_line(text):
    finding = found(text)
    assert finding.reason == "rule.torch_compute"
    line = finding.diagnostics[0].line
    assert "return" in text.splitlines()[line - 1]
    assert found(text, "kernelbench") is None


@pytest.mark.parametrize(
    "text",
    [
        model("return ext.run(x, self.fc.weight)", init="self.fc = nn.Linear(3, 3)"),
        model("y = torch.empty_like(x); ext.run(x, y); return y"),
        model("return ext.run(x.contiguous().view(-1)).view(x.shape)"),
        model("n = x.numel() * 2 + 1; return ext.run(x, n)"),
        model("return self.helper(x)", init="self.helper = nn.ModuleList()"),
        model("# torch.relu(x)\n        return ext.run(x, 'torch.relu(x)')"),
        model("return ext.run(x)", prelude='doc = """calls torch::relu(x) in words"""'),
        "import torch\n\ndef reference(x):\n    return torch.relu(x)\n\n"
        "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return ext.run(x)\n",
    ],
)
def test_honest_code_passes(text):
    assert found(text) is None


def test_cpp_that_calls_torch_is_rejected_where_it_stands():
    source = (
        'src = r"""\n#include <torch/extension.h>\n// torch::relu(x) in a comment\n'
        'torch::Tensor f(torch::Tensor x) {\n  const char* s = "at::relu(x)";\n'
        '  return at::matmul(x, x);\n}\n"""\n' + model("return ext.f(x)")
    )
    finding = found(source)
    assert finding.diagnostics[0].line == 6
    assert "at::matmul" in finding.message


def test_a_cu_file_is_read_too():
    files = [
        SourceFile("model_new.py", model("return ext.f(x)")),
        SourceFile(
            "k.cu", "torch::Tensor f(torch::Tensor x) {\n  return torch::softmax(x, 1);\n}\n"
        ),
    ]
    finding = screen(files, "strict")
    assert (finding.diagnostics[0].file, finding.diagnostics[0].line) == ("k.cu", 2)


def test_a_workspace_without_an_entry_file_is_rejected():
    assert found("x = 1", path="other.py").reason == "workspace.no_entry"


@pytest.mark.parametrize("task_id", ["L1/1", "L1/19", "L1/40", "L2/12", "L2/76", "L3/4"])
def test_every_start_workspace_is_rejected(task_id):
    task = tasks.get(task_id)
    workspace = Workspace.initial(task, "small")
    finding = screen([SourceFile(p, t) for p, t in workspace.files.items()], "strict")
    assert finding is not None
    assert finding.reason == "rule.torch_compute"


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=400))
def test_it_survives_any_text(text):
    screen([SourceFile("model_new.py", text), SourceFile("k.cu", text)], "strict")
