import re

import pytest

from kernelgym.errors import UsageError
from kernelgym.toolchain.build import BuildRequest, SourceFile
from kernelgym.toolchain.translation import translation_units

MODEL = '''import torch
from torch.utils.cpp_extension import load_inline

header = "#include <torch/extension.h>\\n"
cuda_source = """
__global__ void k() {}

torch::Tensor f(torch::Tensor x) {
    return x;
}
"""
template = """
int g() {
    return VALUE;
}
int h() {
    return 0;
}
"""
cpp_source = "torch::Tensor f(torch::Tensor x);"
'''
FILES = (SourceFile("model_new.py", MODEL),)


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


def source_line(text):
    return MODEL.split("\n").index(text) + 1


def translate(**named):
    return {
        unit.path: unit
        for unit in translation_units(BuildRequest("e", "emulator", files=FILES, **named))
    }


def test_units_are_those_of_load_inline():
    cuda = MODEL.split('"""')[1]
    units = translate(
        cpp_sources=("torch::Tensor f(torch::Tensor x);",),
        cuda_sources=(cuda,),
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
    assert cuda in cu


def test_lines_lead_back_to_the_string_in_the_workspace():
    units = translate(cpp_sources=("",), cuda_sources=(MODEL.split('"""')[1],))
    line = "    return x;"
    assert place_of(units["cuda.cu"], line) == ("model_new.py", source_line(line))
    assert place_of(units["cuda.cu"], "#include <cuda.h>")[0] == "<load_inline>"


def test_a_text_put_together_is_located_line_by_line():
    filled = MODEL.split('"""')[3].replace("VALUE", "42")
    text = "#include <torch/extension.h>\n" + MODEL.split('"""')[1] + filled
    unit = translate(cpp_sources=(text,))["main.cpp"]
    for line in ("__global__ void k() {}", "int g() {", "int h() {", "    return 0;"):
        assert place_of(unit, line) == ("model_new.py", source_line(line))
    # One line in the place of one line: the filled-in template's.
    assert place_of(unit, "    return 42;") == ("model_new.py", source_line("    return VALUE;"))
    plain = "\n".join(line for line in unit.text.split("\n") if not line.startswith("#line"))
    assert text in plain


def test_lines_that_stand_nowhere_are_counted_in_their_argument():
    unit = translate(cuda_sources=("int a;\nint nowhere;",))["cuda.cu"]
    assert place_of(unit, "int nowhere;") == ("cuda_sources[0]", 2)


def test_no_directive_breaks_a_continued_line():
    text = "int h() {\n#define TWICE(x) \\\n    return 0;\n}\n__global__ void k() {}"
    unit = translate(cpp_sources=(text,))["main.cpp"]
    assert "#define TWICE(x) \\\n    return 0;" in unit.text


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
