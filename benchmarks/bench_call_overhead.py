"""What a call of a candidate's function costs, before its kernel: two tensors in, one out.

    pytest benchmarks/bench_call_overhead.py
    pytest benchmarks/bench_call_overhead.py -m "slow or not slow"    # also pybind11 with torch's headers

The functions return one of their arguments, so that no allocation is timed. The stand-in is to cost
at most 1 us more than pybind11 with torch's own headers (whose build alone takes most of a minute).
"""

import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sysconfig
import time

import pytest
import torch

import kernelgym.toolchain

SOURCE = """
#include <torch/extension.h>
torch::Tensor second(torch::Tensor a, torch::Tensor b) {
  TORCH_CHECK(a.dim() == b.dim() && a.numel() == b.numel(), "sizes differ");
  return b;
}
torch::Tensor fresh(torch::Tensor a, torch::Tensor b) {
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "types differ");
  return torch::empty_like(b);
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("second", &second);
  m.def("fresh", &fresh);
}
"""
INCLUDE = pathlib.Path(kernelgym.toolchain.__file__).parent / "include"
FLAGS = ["-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden"]


def compile_extension(folder, name, flags):
    source, library = folder / f"{name}.cpp", folder / f"{name}.so"
    source.write_text(SOURCE)
    command = ["g++", *FLAGS, f"-DTORCH_EXTENSION_NAME={name}", "-shared", source, *flags]
    start = time.perf_counter()
    subprocess.run([*command, "-o", library], check=True)
    seconds = time.perf_counter() - start
    loader = importlib.machinery.ExtensionFileLoader(name, str(library))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module, seconds


@pytest.fixture(scope="module")
def standin(tmp_path_factory):
    folder = tmp_path_factory.mktemp("standin")
    return compile_extension(folder, "standin_overhead", [f"-I{INCLUDE / 'torch'}"])


@pytest.fixture(scope="module")
def pybind(tmp_path_factory):
    from torch.utils.cpp_extension import include_paths, library_paths

    flags = [f"-isystem{path}" for path in [*include_paths(), sysconfig.get_path("include")]]
    flags += [f"-L{path}" for path in library_paths()]
    flags += ["-std=c++20", "-ltorch", "-ltorch_cpu", "-ltorch_python", "-lc10"]
    return compile_extension(tmp_path_factory.mktemp("pybind"), "pybind_overhead", flags)


@pytest.mark.parametrize(
    "device",
    [
        "cpu",
        pytest.param(
            "cuda",
            marks=[
                pytest.mark.gpu,
                pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
            ],
        ),
    ],
)
@pytest.mark.parametrize("function", ["second", "fresh"])
@pytest.mark.parametrize("extension", ["standin", pytest.param("pybind", marks=pytest.mark.slow)])
def test_call(benchmark, request, extension, function, device):
    module, seconds = request.getfixturevalue(extension)
    a, b = (torch.zeros(4, 4, device=device) for _ in range(2))
    benchmark.extra_info["build_seconds"] = seconds
    benchmark(getattr(module, function), a, b)


def test_parsing_the_headers(benchmark, tmp_path):
    source = tmp_path / "empty.cpp"
    source.write_text("#include <torch/extension.h>\n")
    command = ["g++", *FLAGS, f"-I{INCLUDE / 'torch'}", "-fsyntax-only", source]
    benchmark.pedantic(subprocess.run, (command,), {"check": True}, rounds=5)
