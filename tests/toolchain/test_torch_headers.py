"""When a build falls back to torch's real headers, and how."""

import dataclasses

import pytest

from kernelgym.toolchain.build import BuildRequest
from kernelgym.toolchain.cuda import find_nvcc
from kernelgym.toolchain.flags import screen_flags
from kernelgym.toolchain.plan import Plan, Step, Variant
from kernelgym.toolchain.service import BuildService
from kernelgym.toolchain.torch_headers import TorchHeaders, wanted_of_torch

needs_nvcc = pytest.mark.skipif(find_nvcc() is None, reason="needs nvcc")
CPP = """
torch::Tensor run(torch::Tensor x) {
  TORCH_CHECK(x.storage().nbytes() > 0, "expected values");
  return torch::empty_like(x);
}
"""


@pytest.mark.parametrize(
    "message",
    [
        "a.cpp:2:46: error: 'class at::Tensor' has no member named 'bernoulli'",
        "a.cpp:2:63: error: 'conv_tbc' is not a member of 'at'",
        "a.cpp:2:63: error: 'intrusive_ptr' is not a member of 'c10'",
        "a.cpp:2:63: error: \N{LEFT SINGLE QUOTATION MARK}torch::nn\N{RIGHT SINGLE QUOTATION MARK} "
        "has not been declared",
        'a.cu(2): error: class "at::Tensor" has no member "storage"',
        'a.cu(2): error: namespace "at" has no member "_cast_Float"',
        'a.cu(2): error: identifier "TORCH_INTERNAL_ASSERT_DEBUG_ONLY" is undefined',
        "a.cpp:1:10: fatal error: ATen/native/cuda/Reduce.cuh: No such file or directory",
        'a.cu(3): error: no instance of overloaded function "at::empty" matches the argument list',
        "ld: a.o: undefined reference to `at::native::something(at::Tensor)'",
    ],
)
def test_what_torch_has_and_the_stand_in_lacks_is_wanted(message):
    wanted = wanted_of_torch(["something else\n" + message], [])
    assert wanted
    assert wanted in message.translate({0x2018: "'", 0x2019: "'"})


@pytest.mark.parametrize(
    "message",
    [
        "a.cpp:2:46: error: 'class at::Tensor' has no member named 'bernuolli'",
        "a.cpp:2:63: error: 'rellu' is not a member of 'at'",
        'a.cu(2): error: class "at::Tensor" has no member "strage"',
        "a.cpp:1:10: fatal error: ATen/Tensors.h: No such file or directory",
        "a.cpp:2:3: error: expected ';' before '}' token",
        "a.cpp:2:3: error: 'struct Mine' has no member named 'storage'",
        'a.cu(7): error: identifier "fmaxq" is undefined',
        "ld: a.o: undefined reference to `launch(float*)'",
    ],
)
def test_what_torch_does_not_have_either_is_not_wanted(message):
    assert wanted_of_torch([message], []) == ""


def test_one_misspelt_name_spares_the_slow_way():
    both = (
        "a.cpp:2:1: error: 'class at::Tensor' has no member named 'storage'\n"
        "a.cpp:3:1: error: 'rellu' is not a member of 'at'"
    )
    assert wanted_of_torch([both], []) == ""


def test_a_namespace_that_nvcc_does_not_name_is_found_in_the_source():
    message = 'a.cu(2): error: name followed by "::" must be a class or namespace name'
    assert "indexing" in wanted_of_torch([message], ["x.index({torch::indexing::Slice()})"])
    assert wanted_of_torch([message], ["torch::no_such_space::f()"]) == ""


@needs_nvcc
def test_the_plan_is_torchs_own_way():
    request = BuildRequest(
        "e",
        "sm_90",
        cpp_sources=(CPP,),
        cuda_sources=("int x;",),
        functions=(("run", "run"),),
        extra_cflags=("-std=c++17", "-O3"),
        extra_cuda_cflags=("-arch=sm_70", "--use_fast_math"),
        extra_ldflags=("-lcublas", "-s"),
    )
    plan = TorchHeaders().plan(request, screen_flags(request), "kg_x")
    host, device = plan.variants[0].compiles
    assert {"-O3", "-std=c++20"} < set(host.command)
    assert "-std=c++17" not in host.command
    assert {"-D__CUDA_NO_HALF_OPERATORS__", "--use_fast_math", "-std=c++20"} < set(device.command)
    assert "-gencode=arch=compute_90,code=sm_90" in device.command
    assert any(word.endswith("torch/include") for word in host.command)
    link = plan.variants[0].link.command
    assert any(word.endswith("libtorch_python.so") for word in link)
    assert "-s" in link
    assert not any(word.startswith("-lcublas") for word in link)


class Fails:
    """The quick way: g++ says what the stand-in would."""

    path = "fast"

    def __init__(self, message):
        self._message = message

    def identity(self):
        return self._message

    def plan(self, request, flags, module):
        say = Step(("sh", "-c", f'echo "main.cpp:1:1: error: {self._message}" >&2; exit 1'))
        return Plan(variants=(Variant("fast", (say,), say, "a.so"),))


class Works:
    """The way through the real headers."""

    path = "torch"

    def identity(self):
        return "works"

    def plan(self, request, flags, module):
        make = Step(("touch", "../out/a.so"))
        return Plan(variants=(Variant("fast", (make,), make, "a.so"),))


@pytest.mark.parametrize(
    ("message", "path", "status"),
    [
        ("'class at::Tensor' has no member named 'storage'", "torch", "ok"),
        ("'class at::Tensor' has no member named 'strage'", "fast", "compile_error"),
    ],
)
def test_the_service_takes_the_other_way_by_itself_and_says_why(tmp_path, message, path, status):
    toolchains = {"gpu": Fails(message), "torch": Works()}
    with BuildService(tmp_path, toolchains=toolchains) as service:
        result = service.build(BuildRequest("e", "sm_90"), timeout=10.0)
        assert (result.path, result.status) == (path, status)
        assert (message in result.why) == (path == "torch")
        again = service.build(BuildRequest("e", "sm_90"), timeout=10.0)
        assert again == dataclasses.replace(result, cached=True, seconds=again.seconds)


@pytest.mark.slow
@needs_nvcc
def test_a_real_build_through_torchs_headers(tmp_path):
    request = BuildRequest("e", "sm_90", cpp_sources=(CPP,), functions=(("run", "run"),))
    with BuildService(tmp_path) as service:
        result = service.build(request, timeout=600.0)
    assert (result.status, result.path) == ("ok", "torch"), result.diagnostics
    assert "storage" in result.why
