"""Splitting CUDA sources into a device half and a host half."""

from __future__ import annotations

import pytest

from kernelgym.toolchain.split import Declined, split

SOURCE = """#include <torch/extension.h>
#define HD __host__ __device__ __forceinline__
namespace {
template <typename T, int N>
__global__ void __launch_bounds__(256) scale(const T* __restrict__ x, T* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * T(N);
}
}
HD int ceil_div(int a, int b) { return (a + b - 1) / b; }
__device__ float half_of(float v) { return __fdividef(v, 2.0f); }
struct Op { float a; __device__ float operator()(float v) const { return __expf(v) * a; } };
constexpr int BLOCK = 256;
static int counter = 0;
torch::Tensor run(torch::Tensor x) {
  scale<float, 2><<<ceil_div(x.numel(), BLOCK), BLOCK>>>(x.data_ptr<float>(), nullptr, 4);
  return x;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
"""


def words_of(text: str) -> str:
    return " ".join(text.split())


def test_both_halves_keep_every_line_in_its_place():
    half = split(SOURCE)
    assert half.host.count("\n") == half.device.count("\n") == SOURCE.count("\n")
    line = SOURCE.splitlines().index("constexpr int BLOCK = 256;")
    assert (
        half.device.splitlines()[line] == half.host.splitlines()[line] == SOURCE.splitlines()[line]
    )


def test_the_device_half_has_no_function_of_the_host():
    device = split(SOURCE).device
    assert "torch::Tensor" not in device
    assert "PYBIND11" not in device
    assert "counter" not in device
    assert "<<<" not in device
    for kept in ("y[i] = x[i] * T(N)", "ceil_div", "half_of", "struct Op", "BLOCK = 256"):
        assert kept in device


def test_the_host_half_has_no_body_of_a_device_function():
    host = split(SOURCE).host
    for gone in ("blockIdx", "__fdividef", "__expf", "<<<"):
        assert gone not in host
    assert "return (a + b - 1) / b" in host
    assert "__device__ float half_of(float v)  ;" in host


def test_a_kernel_becomes_a_launch_of_its_name_with_its_arguments():
    host = split(SOURCE).host
    assert "struct kg_here {}" in host
    assert "{(void*)&x, (void*)&y, (void*)&n, nullptr}" in host


def test_a_launch_becomes_a_call_with_its_configuration():
    half = split(SOURCE)
    called = "scale<float, 2>(static_cast<decltype(kg_a)&&>(kg_a)...); }, ceil_div(x.numel(), BLOCK), BLOCK)"
    assert called in half.host
    assert half.launched == ("scale < float , 2 >",)
    assert "BLOCK" in half.constants


def test_anonymous_namespaces_get_one_name_for_both_compilers():
    half = split(SOURCE)
    assert "inline namespace kg_anonymous {" in half.host
    assert "inline namespace kg_anonymous {" in half.device


def test_a_pack_of_parameters_is_handed_on():
    half = split("template <class... A> __global__ void k(float* o, A... a) { o[0] = (a + ...); }")
    assert "(void*)&o, (void*)&a..., nullptr" in half.host


def test_a_static_kernel_loses_its_linkage_on_both_sides():
    # NVRTC leaves it out of the mangled name, g++ does not.
    half = split("static __global__ void k(float* x) { x[0] = 1; }")
    assert "static __global__" not in words_of(half.host)
    assert "static __global__" not in words_of(half.device)


def test_macros_that_stand_for_specifiers_are_seen_through():
    text = "#define KERNEL __global__ void\nKERNEL k(float* x) { x[threadIdx.x] = 1; }\n"
    half = split(text)
    assert "threadIdx" not in half.host
    assert "threadIdx" in half.device


def test_preprocessor_lines_inside_a_dropped_body_stay():
    text = "#include <vector>\nvoid f() {\n#ifdef X\n  g();\n#endif\n}\n__device__ int d;\n"
    assert "#ifdef X\n\n#endif" in split(text).device


def test_constructors_of_the_device_lose_their_initialisers_too():
    text = "struct V { float a, b; __device__ V(float x) : a(x), b{__expf(x)} {} int n; };"
    host = split(text).host
    assert "__expf" not in host
    assert "int n;" in host


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "#define K(n) __global__ void n(float* x) { x[0] = 1; }\nK(a)\n",
            "macro defines a kernel",
        ),
        (
            "void f() { auto g = [=] __device__ (int i) { return i; }; }",
            "lambda runs on the device",
        ),
        ("__global__ void k(float) { }", "no plain name"),
        ("__global__ void k(const float (&x)[4]) { }", "no plain name"),
    ],
)
def test_what_cannot_be_told_apart_is_declined(text, why):
    with pytest.raises(Declined, match=why):
        split(text)
