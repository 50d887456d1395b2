"""The text of model_new.py."""

import ast

import pytest

from kernelgym.agents.kernels.program import compile_program
from kernelgym.errors import TaskFormatError

from .programs import source_of


def test_the_constructor_is_kept_and_forward_calls_kernels_only(program):
    init = "self.a = nn.ModuleList([nn.Linear(9, 5)])"
    text = program("torch.relu(self.a[0](x))", (4, 9), init=init).render()
    tree = ast.parse(text)
    classes = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef)}
    assert list(classes) == ["ModelNew"]
    assert "super(ModelNew, self)" in text
    assert init in text
    assert "get_inputs" not in text
    forward = ast.unparse(classes["ModelNew"].body[-1])
    assert "kernels.forward(x.contiguous(), self.a[0].weight, self.a[0].bias)" in forward
    assert "relu" not in forward


def test_knobs_change_the_text(program):
    made = program("x + 1", (64, 64))
    assert made.knobs()["forward.pointwise_0.width"].choices == (4, 2, 1)
    assert "float4" in made.render()
    plain = made.render({"forward.pointwise_0.width": 1, "forward.pointwise_0.block": 64})
    assert "float4" not in plain
    assert "__launch_bounds__(64)" in plain


def test_elements_that_are_no_multiple_go_one_a_thread(program):
    assert program("x + 1", (7, 7)).knobs()["forward.pointwise_0.width"].choices == (1,)


def test_every_choice_of_every_knob_renders(program):
    made = program(
        "torch.cumsum(F.softmax(F.max_pool1d(self.a(x), 2), 2), 1)",
        (4, 8, 12),
        init="self.a = nn.Conv1d(8, 8, 3)",
    )
    texts = {
        made.render({name: choice})
        for name, knob in made.knobs().items()
        for choice in knob.choices
    }
    differing = sum(len(knob.choices) - 1 for knob in made.knobs().values())
    assert len(texts) == differing + 1


def test_names_that_would_collide_are_told_apart(program):
    init = "self.a_b = nn.Parameter(torch.ones(4)); self.a = nn.Module(); "
    init += "self.a.b = nn.Parameter(torch.ones(4))"
    text = program("x + self.a_b * self.a.b", (3, 4), init=init).render()
    assert "torch::Tensor in_a_b, torch::Tensor in_a_b_" in text


def test_a_tuple_is_returned_as_one(program):
    assert "return tuple(results)" in program("torch.max(x, 1)", (4, 9)).render()


def test_a_model_without_forward_is_refused():
    text = source_of("x", (2, 2)).replace("def forward", "def go")
    with pytest.raises(TaskFormatError):
        compile_program(text)
