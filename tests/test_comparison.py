"""One's own reference and kernel from files."""

import pytest

from kernelgym.comparison import Shape, kernel_files, parse_shapes, reference_task
from kernelgym.errors import UsageError

PLAIN = "import torch\n\n\ndef scaled(x, y):\n    return torch.relu(x) * y\n"
LINEAR = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.gemm = nn.Linear(n, 4)

    def forward(self, x):
        return self.gemm(x)


def get_inputs():
    return [torch.randn(3, 5)]


def get_init_inputs():
    return [5]
"""
KERNEL = "#include <torch/extension.h>\n__global__ void k(float* x) {}\n"


@pytest.fixture
def written(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("1024x1024,7", (Shape("", (1024, 1024)), Shape("", (7,)))),
        ("x=2x3:float16, n=4:int64", (Shape("x", (2, 3), "float16"), Shape("n", (4,), "int64"))),
    ],
)
def test_shapes_are_read(text, shapes):
    assert parse_shapes(text) == shapes


@pytest.mark.parametrize("text", ["", "1024*7", "x=", "2x3:half", "-1", "2x"])
def test_other_shapes_are_refused_with_an_example(text):
    with pytest.raises(UsageError, match=r"--shapes: expected shapes such as 1024x1024"):
        parse_shapes(text)


def test_a_plain_function_is_a_task(written):
    task = reference_task(written("ref.py", PLAIN), parse_shapes("y=3,x=2x3"))
    assert task.file.forward_args == ("x", "y")
    assert [spec.shape for spec in task.input_specs()] == [(2, 3), (3,)]
    assert task.facts().outputs == (((2, 3), "float32"),)


def test_shapes_stand_in_for_get_inputs(written):
    path = written("ref.py", LINEAR)
    assert reference_task(path).input_specs()[0].shape == (3, 5)
    assert reference_task(path, parse_shapes("7x5:float16")).input_specs()[0].shape == (7, 5)


@pytest.mark.parametrize(
    ("text", "shapes", "words"),
    [
        (PLAIN, "", "--shapes x=1024x1024,y=1024x1024"),
        (PLAIN, "z=3", "arguments \\(x, y\\)"),
        (PLAIN, "3,3,3", "arguments \\(x, y\\)"),
        (PLAIN, "y=3", "first arguments"),
        ("x = 1\n", "3", "expected a class Model"),
        (
            PLAIN + PLAIN.replace("scaled", "other"),
            "3",
            "one function of tensors, got scaled, other",
        ),
        ("def f(:\n", "3", "expected Python source"),
    ],
)
def test_a_reference_that_does_not_fit_says_what_is_expected(written, text, shapes, words):
    with pytest.raises(UsageError, match=words):
        reference_task(written("ref.py", text), parse_shapes(shapes) if shapes else ())


def test_a_file_that_is_not_there_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="expected a readable text file"):
        reference_task(tmp_path / "none.py")


@pytest.mark.parametrize(
    ("signature", "passed"),
    [
        ("torch::Tensor f(torch::Tensor x)", "extension.f(*inputs)"),
        (
            "at::Tensor f(const at::Tensor& x,\n    at::Tensor w, at::Tensor b)",
            "extension.f(*inputs, *self.state_dict().values())",
        ),
    ],
)
def test_a_function_of_a_cu_file_is_wrapped(written, signature, passed):
    task = reference_task(written("ref.py", LINEAR))
    files = kernel_files(written("own.cu", KERNEL + signature + " { return x; }\n"), task)
    assert set(files) == {"own.cu", "reference_model.py", "model_new.py"}
    assert passed in files["model_new.py"]
    assert " ".join(signature.split()) in files["model_new.py"]
    compile(files["model_new.py"], "model_new.py", "exec")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            KERNEL,
            r"expected a C\+\+ function .*torch::Tensor x\).*gemm_weight.*__global__ function",
        ),
        ("int x;\n", "got no such function"),
        ("torch::Tensor f(torch::Tensor a, torch::Tensor b) { return a; }", "f with 2 arguments"),
    ],
)
def test_a_cu_file_with_nothing_to_call_says_what_signature_is_expected(written, text, words):
    task = reference_task(written("ref.py", LINEAR))
    with pytest.raises(UsageError, match=words):
        kernel_files(written("own.cu", text), task)


def test_one_of_several_functions_can_be_named(written):
    task = reference_task(written("ref.py", LINEAR))
    both = "".join(f"torch::Tensor {n}(torch::Tensor x) {{ return x; }}\n" for n in ("a", "b"))
    path = written("own.cu", both)
    assert "extension.a(" in kernel_files(path, task, "a")["model_new.py"]
    assert "extension.b(" in kernel_files(path, task)["model_new.py"]
    with pytest.raises(UsageError, match="no function 'c'"):
        kernel_files(path, task, "c")


def test_python_kernels_are_taken_with_the_files_that_they_name(written):
    task = reference_task(written("ref.py", LINEAR))
    written("part.cu", "int x;")
    written("unused.cu", "int x;")
    model = "# loads part.cu\nclass ModelNew: pass\n"
    assert kernel_files(written("new.py", model), task) == {
        "model_new.py": model,
        "part.cu": "int x;",
    }
    function = kernel_files(written("f.py", "def f(x):\n    return x\n"), task)
    assert "return f(*inputs)" in function["model_new.py"]
    assert "class Model(" in function["reference_model.py"]


def test_other_files_are_no_kernels(written):
    task = reference_task(written("ref.py", LINEAR))
    with pytest.raises(UsageError, match=r"expected a \.py or a \.cu file"):
        kernel_files(written("x.txt", ""), task)
