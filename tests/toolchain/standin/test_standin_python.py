"""The stand-in without Python's headers, which often are not installed, and beside them."""

import pathlib
import subprocess
import sysconfig

import pytest

import kernelgym.toolchain

HEADERS = pathlib.Path(kernelgym.toolchain.__file__).parent / "include" / "torch"
CUDA = pathlib.Path(__file__).with_name("cuda")
OWN = pathlib.Path(sysconfig.get_path("include"))
MINE = "#include <torch/extension.h>\n"
THEIRS = "#define PY_SSIZE_T_CLEAN\n#include <Python.h>\n"
# What was declared by hand against what Python declares.
CHECKS = """
#include <cstddef>
using kgtorch::MethodDef;
using kgtorch::ModuleDef;
static_assert(sizeof(MethodDef) == sizeof(PyMethodDef));
static_assert(offsetof(MethodDef, function) == offsetof(PyMethodDef, ml_meth));
static_assert(offsetof(MethodDef, flags) == offsetof(PyMethodDef, ml_flags));
static_assert(offsetof(MethodDef, doc) == offsetof(PyMethodDef, ml_doc));
static_assert(MethodDef::kFastCall == METH_FASTCALL && MethodDef::kKeywords == METH_KEYWORDS);
static_assert(sizeof(ModuleDef) == sizeof(PyModuleDef));
static_assert(offsetof(ModuleDef, name) == offsetof(PyModuleDef, m_name));
static_assert(offsetof(ModuleDef, state_size) == offsetof(PyModuleDef, m_size));
static_assert(offsetof(ModuleDef, free) == offsetof(PyModuleDef, m_free));
static_assert(offsetof(PyObject, ob_type) == sizeof(void*));
static_assert(Py_TPFLAGS_LONG_SUBCLASS == 1ul << kgtorch::kIntFlag);
static_assert(Py_TPFLAGS_LIST_SUBCLASS == 1ul << kgtorch::kListFlag);
static_assert(Py_TPFLAGS_TUPLE_SUBCLASS == 1ul << kgtorch::kTupleFlag);
static_assert(Py_TPFLAGS_BYTES_SUBCLASS == 1ul << kgtorch::kBytesFlag);
static_assert(Py_TPFLAGS_UNICODE_SUBCLASS == 1ul << kgtorch::kStrFlag);
static_assert(Py_TPFLAGS_DICT_SUBCLASS == 1ul << kgtorch::kDictFlag);
static_assert(sizeof(PyGILState_STATE) == sizeof(kgtorch::kgtorch_gil_ensure()));
PyObject* nothing() { Py_RETURN_NONE; }
"""


def compile_text(folder, text, *flags):
    source = folder / "text.cpp"
    source.write_text(text)
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{HEADERS}", *flags, source]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_header_of_python_is_read(tmp_path):
    every = [path.relative_to(HEADERS) for path in sorted(HEADERS.rglob("*.h"))]
    # Only the preprocessor runs: an empty header does for cuDNN's, which not every machine has.
    (tmp_path / "cudnn.h").touch()
    text = "".join(f"#include <{path}>\n" for path in every)
    read = (
        compile_text(tmp_path, text, f"-I{CUDA}", f"-I{tmp_path}", "-M").replace("\\\n", "").split()
    )
    assert [path for path in read if path.endswith("/Python.h")] == [str(HEADERS / "Python.h")]


@pytest.mark.skipif(not (OWN / "Python.h").exists(), reason="Python's headers are not installed")
@pytest.mark.parametrize(
    ("order", "flags"),
    [
        ((MINE, THEIRS), ()),
        ((THEIRS, MINE), ()),
        # What is used is in the stable ABI of the oldest Python.
        ((THEIRS, MINE), ("-DPy_LIMITED_API=0x030A0000",)),
    ],
    ids=["after", "before", "limited"],
)
def test_pythons_own_headers_can_be_included_too(tmp_path, order, flags):
    compile_text(tmp_path, "".join(order) + CHECKS, f"-isystem{OWN}", "-fsyntax-only", *flags)
