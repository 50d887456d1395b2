"""Refused symbols are found in a library however its source spells them."""

import subprocess

import pytest

from kernelgym.errors import ToolchainFault
from kernelgym.judge.native_calls import refused_calls

PLAIN = '#include <cstring>\nextern "C" void f(char* a, const char* b) { std::memcpy(a, b, 8); }'
HIDDEN = """
#define GLUE(a, b) a##b
extern "C" int GLUE(mpro, tect)(void*, unsigned long, int);
extern "C" void reset() __asm__("kgemu" "_reset");
extern "C" void f(void* p) { GLUE(mpro, tect)(p, 4096, 0); reset(); }
"""


def built(tmp_path, text):
    (tmp_path / "a.cpp").write_text(text)
    command = ["g++", "-shared", "-fPIC", "a.cpp", "-o", "a.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    return str(tmp_path / "a.so")


def test_an_ordinary_library_calls_nothing_refused(tmp_path):
    assert refused_calls(built(tmp_path, PLAIN)) == ()


def test_hidden_names_are_found(tmp_path):
    assert refused_calls(built(tmp_path, HIDDEN)) == ("kgemu_reset", "mprotect")


def test_what_is_no_library_is_a_fault(tmp_path):
    (tmp_path / "x").write_text("x")
    with pytest.raises(ToolchainFault):
        refused_calls(str(tmp_path / "x"))
