"""Sources in the styles that language models write, one function each, compiled a file at a time."""

import pathlib
import re

import pytest
import torch
import torch.nn.functional as F

from kernelgym.toolchain.build import BuildRequest
from kernelgym.toolchain.translation import translation_units

FOLDER = pathlib.Path(__file__).with_name("candidates")

torch.manual_seed(0)
X = torch.randn(6, 8)
Y = torch.randn(6, 8)
IMAGE = torch.randn(2, 3, 5, 5)
WEIGHT = torch.randn(4, 3, 3, 3)
PARAMETER = torch.nn.Parameter(torch.ones(3))

# name: (arguments, expected)
CASES = {
    "relu_plain": ((X,), X.relu()),
    "add_checked": ((X, Y), X + Y),
    "sigmoid_dispatch": ((X.double(),), X.double().sigmoid()),
    "scale_half": ((X.bfloat16(), 2.0), X.bfloat16() * 2),
    "gelu_opmath": ((X.t(),), F.gelu(X.t())),
    "vectorised": ((X,), X + torch.tensor([1.0, 2, 3, 4]).repeat(2)),
    "optional_bias": ((X, torch.arange(8.0)), X + torch.arange(8.0)),
    "integers": ((torch.arange(5, dtype=torch.int16),), torch.arange(0, 10, 2, dtype=torch.int16)),
    "type_switch": ((torch.zeros(1).double(),), torch.tensor([2.5]).double()),
    "guard_and_stream": ((torch.zeros(3),), torch.ones(3)),
    "row_sum": ((X,), X.sum(1)),
    "matmul_2d": ((X, Y.t().contiguous()), X @ Y.t()),
    "strided": ((X.t(),), X.t()),
    "accessor_kernel": ((X,), X.t()),
    "several_outputs": (
        (X,),
        [torch.zeros_like(X), torch.ones_like(X), torch.full((6, 8, 2), 3.0)],
    ),
    "tuple_outputs": ((X,), (torch.zeros(6), torch.zeros(8, dtype=torch.long))),
    "list_input": (([X[0], X[1], X[2]], (2, 0, 1)), X[[2, 0, 1], 0]),
    "conv_dims": ((IMAGE, WEIGHT), F.conv2d(IMAGE, WEIGHT)),
    "reshaped": ((X.view(2, 3, 8).transpose(0, 1),), X.view(2, 3, 8).transpose(0, 1)),
    "workspace": ((X,), X.sum()),
    "channels_last": ((IMAGE,), IMAGE),
    "auto_everything": ((torch.zeros(3),), torch.arange(3.0).view(3, 1)),
    "namespaces": ((X,), X * 3),
    "using_torch": ((X,), torch.full((2, 2), 6.0)),
    "using_at": ((X, [0, 1]), 48),
    "cpp_headers": ((X,), "shape=[6, 8] dtype=Float device=cuda:0 largest=8"),
    "error_macros": ((32,), 32),
    "struct_params": ((X, 2.0, True), X * -2),
    "template_dispatch": ((X, 64, True), X * X),
    "long_long": ((torch.arange(3),), None),
    "bool_mask": ((X, 0.5), X > 0.5),
    "half_pointers": ((torch.arange(4).half(),), torch.arange(4).half().flip(0)),
    "static_state": ((X,), torch.ones(48)),
    "scalar_result": ((torch.arange(4.0),), 6.0),
    "launch_bounds_and_shared": ((X,), X.max().view(1)),
    "atomics": ((torch.tensor([0, 2, 2, 2]), 4), torch.tensor([1, 0, 3, 0], dtype=torch.int32)),
    "no_grad": ((PARAMETER,), torch.ones(3)),
    "internal_asserts": ((X,), 48),
    "slices": ((X,), torch.cat([X[:, :4], torch.zeros(6, 4)], 1)),
    "device_properties": ((X,), 1024 + 132 + 32),
}


def _translate(text):
    """One translation unit out of many: each section becomes a namespace."""
    includes, bodies, bindings = [], [], []
    for section in re.split(r"^// == ", text, flags=re.MULTILINE)[1:]:
        name, source = section.split("\n", 1)
        includes += re.findall(r"^#include.*$", source, flags=re.MULTILINE)
        body = re.sub(r"^#include.*$", "", source, flags=re.MULTILINE)
        macros = re.findall(r"^#define (\w+)", body, flags=re.MULTILINE)
        undefine = "\n".join(f"#undef {macro}" for macro in macros)
        bodies.append(f"namespace s_{name} {{\n{body}\n{undefine}\n}}")
        bindings.append(
            f'm.def("{name}", torch::wrap_pybind_function(s_{name}::{name}), "{name}");'
        )
    head = "\n".join(
        ["#include <torch/extension.h>", "#include <c10/cuda/CUDAStream.h>", *includes]
    )
    # Candidates are not held to our warnings.
    quiet = '#pragma GCC diagnostic ignored "-Wall"\n' + "".join(
        f'#pragma GCC diagnostic ignored "-W{name}"\n'
        for name in ("sign-compare", "unused-function", "unused-variable", "narrowing")
    )
    module = "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n" + "\n".join(bindings) + "\n}\n"
    return "\n".join([head, quiet, *bodies, module])


@pytest.fixture(scope="module")
def functions(build):
    found = {}
    for path in sorted(FOLDER.glob("*.cu")):
        request = BuildRequest("any", "emulator", cpp_sources=(_translate(path.read_text()),))
        (unit,) = translation_units(request)
        module = build(f"standin_{path.stem}", unit.text)
        found |= {name: f for name, f in vars(module).items() if not name.startswith("__")}
    return found


@pytest.mark.parametrize("name", CASES)
def test_candidate(functions, name):
    args, expected = CASES[name]
    got = functions[name](*args)
    if isinstance(expected, list | tuple):
        assert type(got) is type(expected)
    if expected is None:
        assert got.dtype == torch.int32
    elif isinstance(expected, str | int | float):
        assert got == expected
    else:
        torch.testing.assert_close(got, expected)


def test_candidates_that_write_into_their_arguments(functions):
    x = X.clone()
    functions["inplace_void"](x, 0.5)
    torch.testing.assert_close(x, F.leaky_relu(X, 0.5))
    out = torch.zeros_like(X)
    assert functions["out_argument"](out, X) is None
    torch.testing.assert_close(out, X * X)


@pytest.mark.parametrize(
    ("name", "args", "error", "text"),
    [
        ("add_checked", (X, Y.t()), RuntimeError, "b must be contiguous"),
        ("add_checked", (X, Y[:2]), RuntimeError, r"got \[6, 8\] and \[2, 8\]"),
        ("vectorised", (torch.zeros(5),), RuntimeError, "multiple of 4, got 5"),
        ("type_switch", (torch.zeros(1, dtype=torch.int8),), RuntimeError, "dtype: Char"),
        ("template_dispatch", (X, 65, True), RuntimeError, "unsupported block size 65"),
        ("error_macros", (2048,), RuntimeError, "CUDA error at .*: invalid argument"),
        ("row_sum", (X[0],), RuntimeError, "expected 2D input, got 1D"),
        ("internal_asserts", (torch.zeros(200),), ValueError, "too large: 200"),
        ("internal_asserts", (torch.zeros(2, dtype=torch.int),), TypeError, "got Int"),
        ("internal_asserts", (torch.zeros(()),), RuntimeError, r"x.dim\(\) >= 1 \(0 vs. 1\)"),
        ("sigmoid_dispatch", (X.half(),), NotImplementedError, "not implemented for 'Half'"),
        ("optional_bias", (X, 3), TypeError, r"torch.Tensor \| None"),
    ],
)
def test_candidates_refuse(functions, name, args, error, text):
    with pytest.raises(error, match=text):
        functions[name](*args)
