"""load_inline and load from the candidate's call to the imported module."""

import hashlib
import subprocess
import sys

import pytest
import torch

from kernelgym.toolchain.build import BuildResult, Diagnostic, SourceFile
from kernelgym.toolchain.inline import BuildFailed, install
from kernelgym.toolchain.translation import translation_units

CUDA = """
#include <torch/extension.h>
__global__ void triple_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 3 * x[i];
}
torch::Tensor triple(torch::Tensor x) {
  auto y = torch::empty_like(x);
  triple_kernel<<<(x.numel() + 31) / 32, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
"""
DECLARATION = "torch::Tensor triple(torch::Tensor x);"
FILE = CUDA + 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("triple", &triple); }\n'
X = torch.arange(4.0)


@pytest.fixture(scope="module")
def cache():
    return {}


@pytest.fixture
def installed(build, cache):
    def service(request):
        units = translation_units(request)
        if units not in cache:
            cache[units] = compiled(request, units)
        return cache[units]

    def compiled(request, units):
        key = hashlib.sha256(repr(request).encode()).hexdigest()
        try:
            path = build.compile(f"kg_{key[:24]}", *(unit.text for unit in units))
        except RuntimeError as error:
            diagnostic = Diagnostic("model_new.py", 3, 1, "error", str(error), tool="g++")
            return BuildResult(key, "compile_error", "emulator", diagnostics=(diagnostic,))
        return BuildResult(key, "ok", "emulator", libraries=(("fast", path),))

    files = (SourceFile("kernels/triple.cu", FILE), SourceFile("kernels/common.cuh", ""))
    installed = install(service, target="emulator", variant="fast", files=files)
    yield installed
    installed.uninstall()


def test_everything_in_cuda_sources_with_a_declaration(installed):
    from torch.utils.cpp_extension import load_inline

    module = load_inline("m", cpp_sources=DECLARATION, cuda_sources=CUDA, functions=["triple"])
    assert module.triple(X).tolist() == [0, 3, 6, 9]
    assert module.__name__ == "kg_" + installed.results[0].key[:24]
    again = load_inline("m", cpp_sources=DECLARATION, cuda_sources=CUDA, functions=["triple"])
    assert again is module
    assert [result.status for result in installed.results] == ["ok", "ok"]


def test_a_dict_of_functions_carries_their_documentation(installed):
    module = torch.utils.cpp_extension.load_inline(
        name="m",
        cpp_sources=[DECLARATION],
        cuda_sources=[CUDA],
        functions={"triple": 'says "three"\nand more'},
        extra_cuda_cflags=["-O3", "--use_fast_math"],
        with_cuda=True,
        verbose=True,
    )
    assert 'says "three"\nand more' in module.triple.__doc__


def test_a_function_that_nobody_declared_is_an_error_as_with_torch(installed):
    from torch.utils.cpp_extension import load_inline

    with pytest.raises(BuildFailed, match=r"triple.* was not declared") as error:
        load_inline("m", cpp_sources="", cuda_sources=CUDA, functions=["triple"])
    assert error.value.result is installed.results[-1]
    assert "model_new.py:3:1: error: " in str(error.value)


def test_a_definition_in_both_units_fails_to_link(installed):
    from torch.utils.cpp_extension import load_inline

    same = "int answer() { return 42; }"
    with pytest.raises(subprocess.CalledProcessError):
        load_inline("m", cpp_sources=same, cuda_sources=same, functions=["answer"])


def test_an_explicit_module_under_any_name(installed):
    from torch.utils.cpp_extension import load_inline

    source = FILE.replace("TORCH_EXTENSION_NAME", "spelled_out")
    module = load_inline("spelled_out", cpp_sources="", cuda_sources=source)
    assert module.triple(X)[1] == 3


def test_load_takes_files_of_the_workspace(installed):
    import kernelgym.toolchain

    module = kernelgym.toolchain.load("m", ["/anywhere/kernels/triple.cu"])
    assert module.triple(X)[2] == 6
    from torch.utils.cpp_extension import load

    assert load(name="m", sources="kernels/triple.cu") is not None


def test_load_takes_files_that_the_candidate_wrote(installed, tmp_path):
    from torch.utils.cpp_extension import load

    path = tmp_path / "own.cu"
    path.write_text(FILE.replace("3 *", "4 *"))
    assert load("m", str(path)).triple(X)[1] == 4
    with pytest.raises(FileNotFoundError, match=r"kernels/common\.cuh"):
        load("m", "nowhere.cu")


def test_a_library_of_operators_is_loaded_without_being_a_module(installed):
    from torch.utils.cpp_extension import load_inline

    registration = 'TORCH_LIBRARY(kgtest_inline, m) { m.def("triple", &triple); }'
    path = load_inline("m", "", cuda_sources=CUDA + "#include <torch/library.h>\n" + registration,
                       is_python_module=False)  # fmt: skip
    assert path.endswith(".so")
    assert torch.ops.kgtest_inline.triple(X)[3] == 9


def test_the_real_module_is_not_imported_before_more_of_it_is_wanted():
    script = """
import sys
from kernelgym.toolchain.inline import install
import torch
installed = install(None, target="emulator", variant="fast", files=())
from torch.utils.cpp_extension import load_inline
assert "setuptools" not in sys.modules
from torch.utils.cpp_extension import include_paths, CUDA_HOME
assert include_paths() and torch.utils.cpp_extension.load == installed.load
installed.uninstall()
assert "torch.utils.cpp_extension" not in sys.modules
import torch.utils.cpp_extension as real
assert real.load is not installed.load and real.__file__
other = install(None, target="emulator", variant="fast", files=())
assert real.load == other.load
other.uninstall()
assert real.load.__module__ == "torch.utils.cpp_extension"
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True)
