"""Whose kernels ran: from names to owners."""

import pytest

from kernelgym.judge.ownership import (
    calls_library,
    declared_kernels,
    foreign_compute,
    kernel_identifier,
    owned_kernels,
    shorter_than_its_kernels,
    split_by_owner,
)
from kernelgym.judge.protocol import KernelTime
from kernelgym.toolchain.build import BuildRequest, BuildResult, KernelResources, SourceFile

FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)"


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("relu_kernel", "relu_kernel"),
        ("relu_kernel(float const*, float*, int)", "relu_kernel"),
        ("void ns::inner::scale<float, 4>(float*, int)", "scale"),
        ("void (anonymous namespace)::hidden<int>(int*)", "hidden"),
        ("(anonymous namespace)::plain(int*)", "plain"),
    ],
)
def test_the_identifier_is_what_stands_in_the_source(name, identifier):
    assert kernel_identifier(name) == identifier


def test_kernels_of_the_build_are_own_and_torchs_are_foreign():
    build = BuildResult("k", "ok", "fast", kernels=(KernelResources("void scale<float>"),))
    ran = (KernelTime("void scale<float>(float*)", 2, 3e-6), KernelTime(FILL, 1, 1e-6))
    counters, coverage = split_by_owner(ran, owned_kernels([build]), library=False)
    assert (coverage.own, coverage.library, coverage.foreign) == pytest.approx((0.75, 0.0, 0.25))
    assert [row.owner for row in counters.kernels] == ["own", "foreign"]
    assert counters.total.time == pytest.approx(4e-6)
    assert counters.total.launches == 3


def test_a_library_that_the_candidate_calls_is_told_from_torchs_fills():
    gemm = KernelTime("sm90_xmma_gemm_f32f32_f32_tn_n", 1, 9e-6)
    _, coverage = split_by_owner([gemm, KernelTime(FILL, 1, 1e-6)], frozenset(), library=True)
    assert (coverage.library, coverage.foreign) == pytest.approx((0.9, 0.1))
    _, coverage = split_by_owner([gemm], frozenset(), library=False)
    assert coverage.foreign == 1.0


def test_nothing_known_to_have_run_is_no_split():
    assert split_by_owner([], frozenset({"relu"}), library=False) is None


def test_a_call_of_cublas_is_seen_in_inline_sources_and_in_files():
    call = "cublasSgemm(handle, CUBLAS_OP_N);"
    assert calls_library([BuildRequest("x", "sm_90", cpp_sources=(call,))])
    file = SourceFile("product.cpp", call)
    assert calls_library([BuildRequest("x", "sm_90", sources=(file.path,), files=(file,))])
    assert not calls_library([BuildRequest("x", "sm_90", files=(file,))])
    assert not calls_library([BuildRequest("x", "sm_90", cpp_sources=("cublasHandle_t h;",))])


def test_kernels_of_torchs_compiler_are_not_the_candidates():
    names = ("triton_poi_fused_relu_0", "relu_triton", "triton_relu")
    build = BuildResult("k", "ok", "ptxas", kernels=tuple(map(KernelResources, names)))
    assert owned_kernels([build]) == {"relu_triton", "triton_relu"}


def test_a_call_of_cudnn_is_one_of_a_library():
    call = "AT_CUDNN_CHECK(cudnnConvolutionForward(handle, &one));"
    assert calls_library([BuildRequest("x", "sm_90", cuda_sources=(call,))])


DECLARING = """
import cupy as cp
from cupyx import jit

module = cp.RawModule(code=r'''
extern "C" __global__ void __launch_bounds__(256, min(2, 3)) scale(float* x) {}
template <typename T> __global__ void shift(T* x) {}
''')
add = cp.RawKernel(source(), "add_" "one")
square = cp.ElementwiseKernel("T x", "T y", "y = x * x", "square_all")
total = cp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", name="total")

@jit.rawkernel()
def halve(x, y): ...
"""


def test_kernels_that_the_workspace_spells_out_are_found():
    files = [
        SourceFile("model_new.py", DECLARING),
        SourceFile(
            "a.cu", "// __global__ void not_this(int)\n__global__ static void that(int* x);"
        ),
    ]
    found = {"scale", "shift", "add_one", "square_all", "total", "halve", "that"}
    assert declared_kernels(files) == found


@pytest.mark.parametrize(
    ("name", "computes"),
    [
        (FILL, False),
        ("Memcpy DtoD (Device -> Device)", False),
        ("void at::native::elementwise_kernel<128, 4, direct_copy_kernel_cuda>(int)", False),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::relu>(int)", True),
        ("cupy_maximum__float32_float_float32", True),
        ("triton_poi_fused_relu_0", True),
    ],
)
def test_foreign_kernels_that_compute_are_told_from_copies_and_fills(name, computes):
    ran = [KernelTime("mine", 1, 1e-6), KernelTime(name, 1, 1e-6)]
    found = foreign_compute(ran, frozenset({"mine"}), library=True)
    assert found == ((name,) if computes else ())


@pytest.mark.parametrize(
    ("seconds", "refused"), [(1e-6, True), (2.4e-4, True), (3e-4, False), (5e-4, False)]
)
def test_no_call_is_shorter_than_its_longest_kernel(seconds, refused):
    kernels = [KernelTime("a", 4, 2e-3), KernelTime("b", 1, 1e-5)]
    failure = shorter_than_its_kernels(seconds, kernels)
    assert (failure is not None) == refused
    assert shorter_than_its_kernels(1e-9, [KernelTime("small", 1, 5e-6)]) is None
    assert shorter_than_its_kernels(1e-9, []) is None
