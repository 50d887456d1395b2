"""What fuses into which kernel, and what is refused."""

import pytest
import torch

from kernelgym.agents.kernels.lowering import UnsupportedOperator
from kernelgym.agents.kernels.program import compile_program
from kernelgym.agents.kernels.trace import read_source, trace
from kernelgym.errors import TaskFormatError

from .programs import compose, source_of


def families(program):
    return [[kernel.family for kernel in plan.kernels] for plan in program.plans]


@pytest.mark.parametrize(
    ("forward", "shapes", "init", "expected"),
    [
        ("torch.relu(x * 2 + 1).sigmoid()", [(4, 9)], "pass", ["pointwise"]),
        ("F.softmax(x, dim=1)", [(4, 9)], "pass", ["rows"]),
        ("F.log_softmax(x, dim=2)", [(4, 9, 5)], "pass", ["rows"]),
        ("F.layer_norm(x, (9,))", [(4, 9)], "pass", ["rows"]),
        ("x / torch.sqrt((x * x).mean(1, keepdim=True) + 1e-5)", [(4, 9, 3)], "pass", ["rows"]),
        ("F.group_norm(x, 2)", [(4, 6, 5, 5)], "pass", ["rows"]),
        ("torch.logsumexp(x, dim=1)", [(4, 9)], "pass", ["rows"]),
        ("x @ y", [(4, 9), (9, 5)], "pass", ["product"]),
        ("F.gelu(self.a(x)) * 2", [(4, 9)], "self.a = nn.Linear(9, 16)", ["product"]),
        ("x.T @ y.T", [(9, 4), (5, 9)], "pass", ["product"]),
        ("F.softmax(self.a(x), -1)", [(4, 9)], "self.a = nn.Linear(9, 16)", ["product", "rows"]),
        ("F.mish(self.a(x))", [(2, 8, 9, 9)], "self.a = nn.Conv2d(8, 8, 3)", ["product"]),
        ("self.a(x)", [(2, 8, 9, 9)], "self.a = nn.Conv2d(8, 8, 3, groups=8)", ["window"]),
        ("F.max_pool2d(x, 2) + 1", [(2, 3, 8, 8)], "pass", ["window"]),
        ("F.avg_pool1d(torch.relu(x), 3)", [(2, 3, 8)], "pass", ["pointwise", "window"]),
        ("torch.cumsum(x, dim=1)", [(4, 9)], "pass", ["scan"]),
        ("torch.argmax(x, dim=1)", [(4, 9, 5)], "pass", ["rows"]),
        ("torch.cat([x, y], dim=1).flip(1)", [(4, 9), (4, 2)], "pass", ["pointwise"]),
    ],
)
def test_kernels_of_a_program(program, forward, shapes, init, expected):
    assert families(program(forward, *shapes, init=init)) == [expected]


def test_batch_norm_has_a_plan_for_each_mode(program):
    made = program("self.a(x)", (4, 3, 5, 5), init="self.a = nn.BatchNorm2d(3)")
    assert families(made) == [["rows"], ["pointwise"]]
    assert "if self.training:" in made.render()


def test_a_result_nobody_reads_is_neither_stored_nor_allocated(program):
    text = program("torch.relu(x @ y)", (4, 9), (9, 5)).render()
    assert text.count("torch::empty(") == 1


def test_what_has_no_kernel_is_refused_by_name():
    with pytest.raises(UnsupportedOperator, match="sort"):
        compile_program(source_of("torch.sort(x)[0]", (4, 9)))


def test_a_program_that_fails_says_so():
    with pytest.raises(TaskFormatError, match="cannot be traced"):
        trace(source_of("x @ x", (4, 9)), training=True)


def test_tracing_allocates_nothing():
    traced = trace(source_of("x + 1", (2**20, 2**20)), training=True)
    assert traced.parameters == ("x",)
    assert traced.sources == ("x",)


def test_tracing_does_not_touch_the_generator():
    before = torch.get_rng_state()
    trace(source_of("self.a(x)", (4, 9), init="self.a = nn.Linear(9, 5)"), training=True)
    assert torch.equal(torch.get_rng_state(), before)


def test_large_tensors_are_indexed_with_64_bits(program):
    assert "using index_t = int64_t;" in program("x + 1", (2**16, 2**16)).render()
    assert "using index_t = int;" in program("x + 1", (2**10, 2**10)).render()


def test_a_task_text_is_read_out_of_its_fence():
    assert read_source("Task L1/1\n\n```python reference.py\nclass Model: pass\n```\n") == (
        "class Model: pass\n"
    )
    with pytest.raises(TaskFormatError, match="class Model"):
        read_source("no program")


def test_most_random_compositions_lower():
    failures = []
    for seed in range(12):
        try:
            compile_program(compose(seed)).render()
        except UnsupportedOperator as error:
            failures.append(f"{seed}: {error}")
    assert len(failures) <= 1, failures
