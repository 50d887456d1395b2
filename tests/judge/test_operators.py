"""What the recorder sees of operators that a candidate defines itself."""

import pytest
import torch

from kernelgym.judge.operators import OperatorRecorder


@pytest.fixture
def library():
    with torch.library._scoped_library("kgtest", "FRAGMENT") as library:
        yield library


def recorded(operator, *args):
    with torch.no_grad(), OperatorRecorder() as recorder:
        result = operator(*args)
    return result, [(call.name, call.kind) for call in recorder.calls]


def test_operators_inside_a_custom_one_are_recorded(library):
    library.define("clamp(Tensor x) -> Tensor")
    library.impl("clamp", lambda x: x.clamp_min(0), "CPU")
    x = torch.tensor([-1.0, 2.0])
    result, calls = recorded(torch.ops.kgtest.clamp, x)
    assert result.tolist() == [0.0, 2.0]
    assert calls == [("aten.clamp_min.default", "compute"), ("kgtest.clamp.default", "own")]


def test_custom_operators_that_call_each_other_are_recorded_to_the_bottom():
    @torch.library.custom_op("kgtest_nested::inner", mutates_args=("x",))
    def inner(x: torch.Tensor) -> None:
        x.add_(1)

    @torch.library.custom_op("kgtest_nested::outer", mutates_args=())
    def outer(x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        y.zero_()
        inner(y)
        return y

    result, calls = recorded(outer, torch.zeros(3))
    assert result.tolist() == [1.0, 1.0, 1.0]
    assert ("aten.add_.Tensor", "compute") in calls
    assert ("kgtest_nested.inner.default", "own") in calls


def test_a_custom_operator_that_only_allocates_computes_nothing(library):
    library.define("fresh(Tensor x) -> Tensor")
    library.impl("fresh", torch.empty_like, "CompositeExplicitAutograd")
    _, calls = recorded(torch.ops.kgtest.fresh, torch.zeros(3))
    assert {kind for _, kind in calls} == {"create", "own"}
