"""The lexer, the rewriter, flags and what compilers say, on texts that nobody meant to write."""

import itertools
import pathlib
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernelgym.toolchain.build import BuildRequest, Diagnostic, SourceFile
from kernelgym.toolchain.diagnostics import MAX_DIAGNOSTICS, parse_compiler_output, parse_python
from kernelgym.toolchain.flags import screen_flags
from kernelgym.toolchain.lexer import code_tokens, tokenize
from kernelgym.toolchain.rewrite import rewrite
from kernelgym.toolchain.sourcemap import SourceMap
from tests.fuzz.strategies import CPP, FUZZ, LINES, TEXT, lines_of

PYTHON = '''import torch

source = """
__global__ void k(float* x) {}
int y;
"""
'''
FILES = (SourceFile("model_new.py", PYTHON), SourceFile("kernels/k.cu", "int \u00e4x;\nint y;\n"))
SOURCES = {"cuda_sources[0]": "\n__global__ void k(float* x) {}\nint y;\n"}

SAID = st.sampled_from(
    [
        "model_new.py:4:3: error: 'x' was not declared",
        "kernels/k.cu:1:7: warning: unused",
        "kernels/k.cu:99999999:1: error: far away",
        "cuda_sources[0]:2: error: expected ';' before '}'",
        "cuda_sources[0]:0:0: error: expected ';'",
        "/usr/include/c++/12/vector:3:4: note: here",
        "a.h:1:1:   required from 'void f() [with T = " + "x" * 100 + "]'",
        "cuda_sources[0]:2:5:   required from here",
        "In file included from x:",
        "a.h: In instantiation of 'f<int>':",
        'kernels/k.cu(2): error: identifier "q" is undefined',
        "kernels/k.cu(2): error #20-D: identifier",
        '          detected during instantiation of "f" at line 3 of kernels/k.cu',
        '          detected during instantiation of "f" at line 3',
        "ptxas error   : Entry function 'k' uses too much shared data",
        "ptxas fatal   : (C7600) no",
        "undefined reference to `f(int)'",
        "/usr/bin/ld: cannot find -lfoo: No such file",
        "g++: fatal error: Killed signal terminated program cc1plus",
        "    int q;",
        "        ^",
        "^",
        "Traceback (most recent call last):",
        '  File "model_new.py", line 4, in <module>',
        '  File "model_new.py", line 0',
        '  File "kernels/k.cu", line 1, in f',
        "    x = 1",
        "    ~~~~",
        "    ~~^~~",
        "ValueError: no",
        "KeyboardInterrupt",
        "m.x.Y: \u2603",
        "During handling of the above exception, another exception occurred:",
        "model_new.py:" + "9" * 3900 + ":1: error: long",
        "std::vector<std::pair<int, std::vector<std::map<int, float>>>> " * 8,
    ]
)
OUTPUT = st.one_of(TEXT, LINES, lines_of(st.one_of(SAID, SAID, TEXT)))


def expect_sound(diagnostics):
    assert len(diagnostics) <= MAX_DIAGNOSTICS
    for found in diagnostics:
        assert isinstance(found, Diagnostic)
        assert found.severity in ("error", "warning", "note")
        assert found.line >= 0
        assert found.column >= 0
        assert "\n" not in found.text


@FUZZ
@given(OUTPUT, st.sampled_from(["g++", "nvcc", "nvrtc"]), st.sampled_from(["", "/tmp/build"]))
def test_what_a_compiler_says_becomes_diagnostics(text, tool, root):
    found = parse_compiler_output(
        text, tool=tool, source_map=SourceMap(FILES), sources=SOURCES, root=root
    )
    expect_sound(found)


@FUZZ
@example('  File "model_new.py", line 4, in <module>\n    x = 1\n    ~~~~\nValueError: no')
@given(OUTPUT)
def test_what_python_says_becomes_one_diagnostic_at_most(text):
    found = parse_python(text, source_map=SourceMap(FILES))
    expect_sound(found)
    assert len(found) <= 1


@FUZZ
@given(CPP)
def test_tokens_joined_are_the_text(text):
    tokens = tokenize(text)
    assert "".join(token.text for token in tokens) == text
    for before, after in itertools.pairwise(tokens):
        assert before.end == after.start
        assert before.line <= after.line
    assert sum(map(len, code_tokens(tokens))) <= len(tokens)


@FUZZ
@given(CPP)
def test_a_rewritten_text_keeps_its_lines(text):
    result = rewrite(text)
    assert result.text.count("\n") == text.count("\n")
    for before, after in zip(result.edits, result.edits[1:], strict=False):
        assert before.end <= after.start
    for line in (1, 2, text.count("\n") + 1):
        for column in (1, 7, 1000):
            assert isinstance(result.original_column(line, column), int)


@FUZZ
@given(
    st.lists(st.one_of(TEXT, CPP), min_size=1, max_size=3), st.integers(0, 40), st.integers(0, 99)
)
def test_a_source_map_finds_a_place_or_none(texts, line, column):
    files = [SourceFile(f"f{i}.{'py' if i % 2 else 'cu'}", text) for i, text in enumerate(texts)]
    source_map = SourceMap(files)
    for text in (*texts, PYTHON, ""):
        place = source_map.locate(text, line, column)
        assert place is None or source_map.has_file(place.file)


FLAGS = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [
            "-O3",
            "-I",
            "-I/etc",
            "-I../..",
            "-Ia/../../b",
            "-Iinclude",
            "-I./",
            "-isystem /etc",
            "-include /etc/passwd",
            "-fplugin=x.so",
            "-wrapper sh,-c",
            "-o /tmp/x",
            "@/etc/passwd",
            "-Xcompiler -fplugin=x",
            "-Xcompiler=-O3,-Wl,-rpath,/x",
            "-Wp,-MD,/tmp/x",
            "-D'A=\"b\"'",
            "-lcublas",
            "-L/usr/lib",
            "-l/etc/x",
            "'",
            '"',
            "\\",
        ]
    ),
)


@FUZZ
@given(st.lists(FLAGS, max_size=5), st.lists(FLAGS, max_size=5), st.lists(FLAGS, max_size=5))
def test_no_accepted_flag_names_a_file_outside(host, device, link):
    request = BuildRequest(
        "x",
        "emulator",
        extra_cflags=tuple(host),
        extra_cuda_cflags=tuple(device),
        extra_ldflags=tuple(link),
    )
    flags = screen_flags(request)
    for folder in flags.include_dirs:
        path = pathlib.PurePosixPath(folder)
        assert not path.is_absolute()
        assert ".." not in path.parts
    for flag in (*flags.host, *flags.device, *flags.link):
        assert flag.startswith("-")
        assert not flag.startswith(("-o", "-include", "-isystem", "-wrapper", "-fplugin", "-B"))
        assert flag.startswith(("-D", "--gen", "-gen", "-X", "--compiler")) or "/" not in flag


@pytest.mark.parametrize(
    "piece",
    ["k<<<", "(", "{", "<", '"', "/*", 'R"(', "#if 0\n", "__shared__ float s[", "a<b>c ", "\\\n"],
)
def test_a_long_source_takes_no_long_time(piece):
    text = piece * (200_000 // len(piece))
    started = time.process_time()
    result = rewrite(text)
    assert result.text.count("\n") == text.count("\n")
    assert time.process_time() - started < 20


@pytest.mark.parametrize(
    "piece", ["<", "std::vector<", " [with ", "/tmp/", "x: ", "a.h:1:1: error: ", "(", "^", " "]
)
def test_a_long_message_takes_no_long_time(piece):
    line = "model_new.py:1:1: error: " + piece * (100_000 // len(piece))
    started = time.process_time()
    found = parse_compiler_output(
        "\n".join([line] * 50), tool="g++", source_map=SourceMap(FILES), root="/tmp/b"
    )
    expect_sound(found)
    assert time.process_time() - started < 20
