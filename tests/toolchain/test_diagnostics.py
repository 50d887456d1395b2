"""Messages of compilers and of Python, mapped back to the workspace."""

from __future__ import annotations

import json
import subprocess
import traceback
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelgym.toolchain.build import Diagnostic, SourceFile
from kernelgym.toolchain.diagnostic_formats import to_gcc, to_sarif
from kernelgym.toolchain.diagnostics import (
    SourceMap,
    parse_compiler_output,
    parse_python,
    resolve,
    tidy,
)

SOURCE = "\n__global__ void k(float* x) {\n  x[0] = 1.0f\n}\n"
MODEL = f'import torch\n\ncuda_source = """{SOURCE}"""\n\n\nclass ModelNew:\n    pass\n'


def workspace(text: str = MODEL, **others: str) -> SourceMap:
    files = [SourceFile("model_new.py", text)]
    files += [SourceFile(name.replace("_", "."), other) for name, other in others.items()]
    return SourceMap(files)


def compile_with_gxx(text: str, folder: Path) -> str:
    (folder / "unit.cpp").write_text('#line 1 "cuda_sources[0]"\n' + text)
    done = subprocess.run(
        [
            *("g++", "-std=c++17", "-fsyntax-only", "-fno-diagnostics-show-caret"),
            *("-fdiagnostics-column-unit=byte", "-Wall", "unit.cpp"),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return done.stderr


def diagnose(text: str, folder: Path, source_map: SourceMap | None = None) -> list[Diagnostic]:
    source_map = source_map or workspace(f"a = 1\ncode = r'''{text}'''\n")
    output = compile_with_gxx(text, folder)
    return list(
        parse_compiler_output(
            output,
            tool="g++",
            source_map=source_map,
            sources={"cuda_sources[0]": text},
            root=str(folder),
        )
    )


def test_gxx_errors_name_the_line_of_the_file(tmp_path: Path) -> None:
    text = '\nint f() {\n  /* größe */ return y;\n}\nint g() { return "a"; }\n'
    found = diagnose(text, tmp_path)
    assert [(d.file, d.line, d.severity, d.tool) for d in found] == [
        ("model_new.py", 4, "error", "g++"),
        ("model_new.py", 6, "error", "g++"),
    ]
    assert found[0].text == "'y' was not declared in this scope"
    assert found[0].excerpt == "  /* größe */ return y;\n                     ^"
    assert found[0].column == 22


def test_a_missing_semicolon_is_on_the_line_that_lacks_it(tmp_path: Path) -> None:
    text = "int f(int n) {\n  int a = n  // no end\n\n  // comment\n  f(a);\n  return a\n}\n"
    found = diagnose(text, tmp_path)
    assert [(d.line, d.column) for d in found] == [(3, 12), (7, 11)]
    assert found[0].text == "expected ',' or ';'"
    assert found[0].excerpt == "  int a = n  // no end\n           ^"


def test_errors_come_before_warnings(tmp_path: Path) -> None:
    found = diagnose("void f() { int unused; }\nvoid g() { missing(); }\n", tmp_path)
    assert [(d.line, d.severity) for d in found] == [(3, "error"), (2, "warning")]


def test_template_noise_is_folded_to_the_line_that_asked(tmp_path: Path) -> None:
    text = (
        "#include <algorithm>\n#include <vector>\n#include <string>\n#include <map>\n"
        "struct S {};\n"
        "void f(std::vector<S>& v) { std::sort(v.begin(), v.end()); }\n"
        "int g(std::map<std::string, std::vector<std::string>> m) { return m; }\n"
    )
    found = diagnose(text, tmp_path)
    assert {d.line for d in found} == {7, 8}
    assert all(d.severity == "error" for d in found)
    assert len(found) <= 6
    (conversion,) = (d.text for d in found if d.line == 8)
    assert "std::map<std::string, std::vector<std::string>>" in conversion
    assert {d.column for d in found if d.line == 7} == {38}
    assert not any("__cxx11" in d.text or "allocator" in d.text or "/usr" in d.text for d in found)


def test_a_missing_header_and_a_missing_symbol(tmp_path: Path) -> None:
    (missing,) = diagnose('#include "nowhere.cuh"\n', tmp_path)
    assert missing.text == "nowhere.cuh: No such file or directory"
    assert missing.line == 2
    link = (
        f"/usr/bin/ld: {tmp_path}/main.o: in function `f()':\n"
        "main.cpp:(.text+0x5): undefined reference to `launch(float*, int)'\n"
        "collect2: error: ld returned 1 exit status\n"
    )
    (found,) = parse_compiler_output(link, tool="g++", source_map=workspace(), root=str(tmp_path))
    assert (found.file, found.line) == ("", 0)
    assert found.text == "undefined reference to 'launch(float*, int)'"


NVCC = """\
cuda_sources[0](4): error: expected a ";"
  }
  ^

cuda_sources[0](2): warning #177-D: variable "unused" was declared but never referenced
  __attribute__((global)) void k(float* x) {
                               ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

/usr/include/thing.h(12): error: no instance of overloaded function
          detected during instantiation of "void k(T *) [with T=float]" at line 2 of cuda_sources[0]

3 errors detected in the compilation of "/tmp/tmpxft_00001/unit.cu".
"""


def test_nvcc_errors_carry_columns_of_what_was_written() -> None:
    found = parse_compiler_output(
        NVCC, tool="nvcc", source_map=workspace(), sources={"cuda_sources[0]": SOURCE}
    )
    assert [(d.line, d.column, d.severity) for d in found] == [
        (5, 14, "error"),
        (4, 0, "error"),
        (4, 17, "warning"),
    ]
    assert found[0].text == 'expected a ";"'
    assert found[0].excerpt == "  x[0] = 1.0f\n             ^"
    assert found[1].text == "thing.h: no instance of overloaded function"
    assert found[2].text.endswith("never referenced [#177-D]")
    assert found[2].excerpt.splitlines()[1] == " " * 16 + "^"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (
            "ptxas error   : Entry function 'k' uses too much shared data (0x61a80 bytes)",
            "Entry function 'k' uses too much shared data (0x61a80 bytes)",
        ),
        (
            "ptxas /tmp/tmpxft_1/a.ptx, line 10; error   : Unknown modifier '.foo'",
            "Unknown modifier '.foo'",
        ),
        ("nvcc fatal   : Unknown option '--foo'", "Unknown option '--foo'"),
        (
            "cc1plus: out of memory allocating 65536 bytes after a total of 1 bytes",
            "out of memory allocating 65536 bytes after a total of 1 bytes",
        ),
        (
            "g++: fatal error: Killed signal terminated program cc1plus",
            "Killed signal terminated program cc1plus",
        ),
        ("/usr/bin/ld: cannot find -lfoo: No such file or directory", "cannot find library -lfoo"),
        (
            "g++: error: /tmp/kernelgym-x1/unit.o: No such file or directory",
            "unit.o: No such file or directory",
        ),
    ],
)
def test_messages_without_a_place(line: str, text: str) -> None:
    (found,) = parse_compiler_output(line + "\n", tool="g++", source_map=workspace())
    assert (found.file, found.line, found.severity, found.text) == ("", 0, "error", text)


def test_messages_in_workspace_files() -> None:
    text = "/scratch/x1/k.cuh:1:5: error: nope\n"
    (found,) = parse_compiler_output(
        text, tool="g++", source_map=workspace(k_cuh="int a b;\n"), root="/scratch/x1"
    )
    assert (found.file, found.line, found.excerpt) == ("k.cuh", 1, "int a b;\n    ^")


def test_at_most_twenty_and_the_rest_is_counted() -> None:
    warning = Diagnostic("f", 1, 1, "warning", "w")
    note = Diagnostic("f", 1, 1, "note", "n")
    many = [warning, note, *(Diagnostic("f", n, 1, "error", "e") for n in range(30))]
    found = tidy([*many, *many])
    assert len(found) == 20
    assert {d.severity for d in found} == {"error"}
    assert found[-1].text == "e (and 12 more messages)"
    assert tidy([warning, note, *many[2:4]])[-2:] == (warning, note)


def test_python_traceback() -> None:
    model = "def forward():\n    return 1 / 0\n\n\nforward()\n"
    try:
        exec(compile(model, "/scratch/model_new.py", "exec"), {})
    except ZeroDivisionError:
        text = traceback.format_exc()
    (found,) = parse_python(text, source_map=workspace(model), root="/scratch")
    assert (found.file, found.line, found.tool) == ("model_new.py", 2, "python")
    assert found.text == "ZeroDivisionError: division by zero"
    assert found.excerpt.startswith("    return 1 / 0")


def test_python_syntax_error_has_a_column() -> None:
    model = "x = 1\nif x = 2:\n    pass\n"
    try:
        compile(model, "model_new.py", "exec")
    except SyntaxError:
        text = traceback.format_exc()
    (found,) = parse_python(text, source_map=workspace(model))
    assert (found.file, found.line, found.column) == ("model_new.py", 2, 4)
    assert found.text.startswith("SyntaxError: invalid syntax")


def test_of_chained_exceptions_the_last_one_counts() -> None:
    text = (
        'Traceback (most recent call last):\n  File "model_new.py", line 1, in <module>\n'
        "KeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "model_new.py", line 3, in <module>\n'
        '  File "/usr/lib/python3/json.py", line 99, in loads\n'
        "RuntimeError: first\nsecond: line\n"
    )
    (found,) = parse_python(text, source_map=workspace())
    assert (found.line, found.text) == (3, "RuntimeError: first")
    assert parse_python("all is well\n  really", source_map=workspace()) == ()
    assert parse_python("", source_map=workspace()) == ()


@given(st.text(alphabet="a/:(),;0123 error\n'\"<>^|", max_size=400))
def test_no_text_breaks_the_parsers(text: str) -> None:
    for tool in ("g++", "nvcc"):
        found = parse_compiler_output(text, tool=tool, source_map=workspace())
        assert all("\n" not in d.text and "/tmp/" not in d.text for d in found)
    parse_python(text, source_map=workspace())


def test_a_flood_is_read_in_time() -> None:
    line = "a" * 100_000 + ":1:1: error: " + "x<" * 50_000 + "/tmp/" * 10_000 + "\n"
    assert len(parse_compiler_output(line * 50, tool="g++", source_map=workspace())) <= 20


FOUND = (
    Diagnostic("model_new.py", 4, 2, "error", "expected ';'", " x\n ^", "g++"),
    Diagnostic("", 0, 0, "warning", "slow", tool="emulator", code="race.shared"),
)


def test_names_of_texts_are_resolved() -> None:
    places = {"source_map": workspace(k_cuh="int a;\n"), "sources": {"cuda_sources[0]": SOURCE}}
    assert resolve("./cuda_sources[0]", 3, 3, **places) == ("model_new.py", 5, 3)  # type: ignore
    assert resolve("k.cuh", 1, **places) == ("k.cuh", 1, 0)  # type: ignore[arg-type]
    assert resolve("/usr/include/math.h", 1, **places) is None  # type: ignore[arg-type]
    unknown = {"source_map": workspace("x = 1\n"), "sources": {"a": "int y;\n"}}
    assert resolve("a", 1, **unknown) == ("", 1, 0)  # type: ignore[arg-type]


def test_gcc_format() -> None:
    assert to_gcc(FOUND) == (
        "model_new.py:4:2: error: expected ';'\n   x\n   ^\n"
        "kernelgym: warning: slow [race.shared]\n"
    )


def test_sarif_format() -> None:
    log = json.loads(json.dumps(to_sarif(FOUND)))
    assert log["version"] == "2.1.0"
    run = log["runs"][0]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["g++", "race.shared"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "model_new.py"
    assert place["region"] == {"startLine": 4, "startColumn": 2, "snippet": {"text": " x"}}
    assert "locations" not in run["results"][1]
