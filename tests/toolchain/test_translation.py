import re

import pytest

from kernelgym.errors import UsageError
from kernelgym.toolchain.build import BuildRequest, SourceFile
from kernelgym.toolchain.translation import translation_units

CUDA = """
__global__ void k() {}

torch::Tensor f(torch::Tensor x) {
    return x;
}
"""


def place_of(unit, line):
    """Where a compiler would say that the line stands."""
    path, number = "", 0
    for text in unit.text.split("\n"):
        directive = re.fullmatch(r'#line (\d+) "(.*)"', text)
        if directive:
            number, path = int(directive[1]), directive[2]
            continue
        if text == line:
            return path, number
        number += 1
    raise AssertionError(f"{line!r} is not in {unit.text}")


def translate(**named):
    return {unit.path: unit for unit in translation_units(BuildRequest("e", "emulator", **named))}


def test_units_are_those_of_load_inline():
    units = translate(
        cpp_sources=("torch::Tensor f(torch::Tensor x);",),
        cuda_sources=(CUDA,),
        functions=(("f", 'the "f"'),),
    )
    assert list(units) == ["main.cpp", "cuda.cu"]
    main = [line for line in units["main.cpp"].text.split("\n") if not line.startswith("#line")]
    assert main == [
        "#include <torch/extension.h>",
        "torch::Tensor f(torch::Tensor x);",
        "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {",
        r'm.def("f", torch::wrap_pybind_function(f), "the \"f\"");',
        "}",
        "",
    ]
    cu = units["cuda.cu"].text
    assert re.findall("#include <(.*)>", cu) == ["torch/types.h", "cuda.h", "cuda_runtime.h"]
    assert CUDA in cu


def test_messages_count_in_the_texts_as_they_were_given():
    units = translate(cpp_sources=("int a;", "\nint b;"), cuda_sources=(CUDA,))
    assert place_of(units["main.cpp"], "int a;") == ("cpp_sources[0]", 1)
    assert place_of(units["main.cpp"], "int b;") == ("cpp_sources[1]", 2)
    assert place_of(units["cuda.cu"], "    return x;") == ("cuda_sources[0]", 5)
    assert place_of(units["cuda.cu"], "#include <cuda.h>")[0] == "<load_inline>"


def test_implicit_headers_can_be_left_out():
    units = translate(cpp_sources=("int a;",), cuda_sources=("int b;",), no_implicit_headers=True)
    assert "#include" not in units["main.cpp"].text + units["cuda.cu"].text


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("std::cout << 1;", "iostream"),
        ("std::sort(a, b);", "algorithm"),
        ("std::function<int()> f;", "functional"),
        ("float x = -FLT_MAX;", "cfloat"),
        ("std::unordered_map<int, int> m;", "unordered_map"),
        ("cublasSgemm(handle);", "cublas_v2.h"),
        ("throw std::runtime_error(x);", "stdexcept"),
        ("memset(p, 0, 4);", "cstring"),
    ],
)
def test_standard_headers_that_torchs_own_would_bring(text, header):
    def headers(source):
        return re.findall("#include <(.*)>", translate(cuda_sources=(source,))["cuda.cu"].text)

    assert header in headers(text)
    assert header not in headers("int x;")


def test_files_of_the_workspace():
    files = (SourceFile("k/a.cu", "int a;\n"), SourceFile("b.cpp", "int b = INT_MAX;\n"))
    request = BuildRequest("e", "emulator", sources=("b.cpp", "k/a.cu"), files=files)
    b, a = translation_units(request)
    assert (b.path, a.path) == ("b.cpp", "k/a.cu")
    assert a.text.endswith('#line 1 "k/a.cu"\nint a;\n')
    assert "#include <cuda_runtime.h>" in a.text
    assert "cuda_runtime" not in b.text
    assert place_of(b, "int b = INT_MAX;") == ("b.cpp", 1)
    with pytest.raises(UsageError, match=r"got 'c.cu'"):
        translation_units(BuildRequest("e", "emulator", sources=("c.cu",), files=files))
