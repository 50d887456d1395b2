import pathlib
import subprocess
import sys

import pytest
import torch

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def ext(build):
    return build("standin_bindings", (HERE / "bindings.cpp").read_text())


def test_numbers_and_text_by_position_name_and_default(ext):
    assert ext.kinds(1, 2, False, "ü", 0.5, 3, 255) == "1 2 0 ü 0.5 3 255"
    assert ext.kinds(1) == "1 1.5 1 text 2 -1 7"
    assert ext.kinds(n=4, i=3, s="x") == "3 1.5 1 x 2 4 7"
    assert ext.kinds(2, b=False) == "2 1.5 0 text 2 -1 7"
    assert ext.kinds(True, torch.tensor(2.5)) == "1 2.5 1 text 2 -1 7"
    assert ext.kinds(torch.tensor(3)) == "3 1.5 1 text 2 -1 7"


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((), {}),
        ((1.5,), {}),
        (("1",), {}),
        ((None,), {}),
        ((1, "x"), {}),
        ((1, 2, True, b"bytes"), {}),
        ((1,), {"i": 2}),
        ((1,), {"unknown": 2}),
        ((1, 2, True, "s", 1, 2**40), {}),
        ((1, 2, True, "s", 1, 2, 256), {}),
        ((2**63,), {}),
        ((1, 2, True, "s", 1, 2, 3, 4), {}),
        ((torch.zeros(2),), {}),
    ],
)
def test_wrong_arguments_tell_the_signature(ext, args, named):
    with pytest.raises(TypeError) as error:
        ext.kinds(*args, **named)
    text = str(error.value)
    assert text.startswith("kinds(): incompatible function arguments.")
    assert "1. (i: int, d: float = 1.5, b: bool = True, s: str = 'text', f: float = 2" in text
    assert "-> str" in text


def test_tensors_are_passed_by_reference_and_come_back_as_the_same_object(ext):
    a, b, c = torch.zeros(2), torch.zeros(6), torch.zeros(3)
    assert ext.reference(a, b, c) is b
    assert ext.reference(a, a, c) is c
    with pytest.raises(TypeError, match=r"Invoked with types: torch\.Tensor, NoneType, list"):
        ext.reference(a, None, [1])


def test_optionals(ext):
    assert ext.optional() == "-1 -1 0"
    assert ext.optional(torch.zeros(3), 5, torch.zeros(1)) == "3 5 1"
    assert ext.optional(None, u=torch.zeros(1)) == "-1 -1 1"


def test_sequences(ext):
    x = torch.zeros(2, 3)
    assert ext.lists([x, x], (1, 2), x.shape, [1, 2.5], (x,)) == 12 + 3 + 500 + 2000 + 10000
    assert ext.lists([], [], [], [], []) == 0
    for wrong in (x, "text", [1, None], 3):
        with pytest.raises(TypeError, match=r"collections.abc.Sequence\[int\]"):
            ext.lists([], wrong, [], [], [])


def test_results(ext):
    x = torch.ones(2, 2)
    assert ext.triple(x) == (x, None, 4)
    assert ext.pair((1, 2.5), (False, 9)) == (3.5, "9")
    first, second = ext.two(x)
    assert first is x
    assert second.data_ptr() == x.data_ptr()
    assert (ext.maybe(True), ext.maybe(False)) == (2.5, None)
    assert ext.nothing(x) is None
    assert x.sum() == 0
    assert ext.scaled(scale=2, x=4) == 8


def test_the_closest_overload_is_called(ext):
    assert [ext.which(v) for v in (1, 1.0, torch.zeros(1))] == ["int", "float", "tensor"]
    with pytest.raises(TypeError, match=r"(?s)1\. .*2\. .*3\. \(arg0: int\)"):
        ext.which("x")


def test_python_objects(ext):
    assert ext.objects({"key": "v"}, [7], lambda a, b: a * b) == ["v", 7, 6]
    x = torch.zeros(3)
    assert ext.dictionary(x) == {"x": x, "n": 3}
    with pytest.raises(IndexError, match="an entry that is not there"):
        ext.objects({}, [7], print)
    with pytest.raises(ZeroDivisionError):
        ext.objects({"key": 0}, [7], lambda a, b: a // 0)


def test_types_devices_and_scalars(ext):
    assert ext.type(torch.bfloat16, torch.device("cpu")) is torch.bfloat16
    assert (ext.scalar(2), ext.scalar(2.5)) == (2.25, 2.5)


def test_callables_of_every_form(ext):
    assert ext.affine(2) == 6
    assert [ext.count(), ext.count()] == [1, 2]
    assert ext.__getattribute__("lambda")(torch.ones(2)).tolist() == [0.5, 0.5]


def test_documentation(ext):
    assert ext.__doc__ == "module text"
    assert ext.answer == 42
    assert ext.kinds.__doc__.startswith("kinds(i: int, d: float = 1.5")
    assert "all kinds" in ext.kinds.__doc__


def test_torch_library_operators_are_called_through_torch_ops(build):
    path = build.compile("standin_library", (HERE / "library.cpp").read_text())
    torch.ops.load_library(path)
    ops = torch.ops.kgtest_ops
    x = torch.arange(3.0)
    assert ops.twice(x).tolist() == [0, 2, 4]
    assert ops.more(x).tolist() == [0, 2, 4]
    assert ops.scale(x, 1.5, None).tolist() == [0, 3, 6]
    assert ops.both(x, 1)[1].tolist() == [0, 2, 4]
    assert str(ops.scale.default._schema).endswith(
        "scale(Tensor arg0, float arg1, Tensor? arg2) -> Tensor"
    )


def test_torch_without_the_exchange_api(build):
    path = build.compile("standin_old", (HERE / "tensors.cpp").read_text())
    script = f"""
import ctypes, importlib.machinery, importlib.util, torch
del torch.Tensor.__dlpack_c_exchange_api__
ctypes.CDLL({str(build.runtime)!r}, mode=ctypes.RTLD_GLOBAL)
loader = importlib.machinery.ExtensionFileLoader("standin_old", {path!r})
ext = importlib.util.module_from_spec(importlib.util.spec_from_loader("standin_old", loader))
loader.exec_module(ext)
x = torch.zeros(2, 3, 4).transpose(0, 2)
assert ext.metadata(x).startswith("[4, 3, 2] [1, 4, 12] 3 24 96 Float"), ext.metadata(x)
assert torch.equal(ext.contiguous(x + 1), x + 1)
y = ext.make_empty(torch.zeros(2, 3, dtype=torch.half), False)
assert y.shape == (2, 5) and y.dtype == torch.half
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_what_is_not_supported_says_so(build):
    classes = '#include <torch/extension.h>\nstruct A {};\nPYBIND11_MODULE(x, m) { py::class_<A>(m, "A"); }'
    with pytest.raises(RuntimeError, match="py::class_ is not supported"):
        build("standin_classes", classes)


def test_a_parameter_of_a_strange_type_says_what_can_be_used(build):
    strange = (
        "#include <torch/extension.h>\nstruct A {};\nstatic int f(A) { return 1; }\n"
        'PYBIND11_MODULE(x, m) { m.def("f", &f); }'
    )
    with pytest.raises(RuntimeError, match="of a type that kernelgym's torch stand-in does not"):
        build("standin_strange", strange)
