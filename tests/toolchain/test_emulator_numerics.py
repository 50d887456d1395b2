"""Arithmetic of the emulated device: mathematics, integers, conversions, 16-bit floats."""

import ctypes

import numpy as np
import pytest
import torch

from kernelgym.toolchain.emulator import Variant

VARIANTS = pytest.mark.parametrize("variant", list(Variant), ids=str)
_P = ctypes.c_void_p


@pytest.fixture(scope="module")
def math_library(emulator):
    return emulator.load(
        """
        #include <cuda_runtime.h>
        #define EACH(X)                                                                        \\
          X(expf(x)) X(__expf(x)) X(logf(x)) X(__logf(x)) X(exp(x)) X(rsqrtf(x)) X(rsqrt(x))   \\
          X(sqrtf(x)) X(tanhf(x)) X(erff(x)) X(erfcf(x)) X(normcdff(x)) X(erfinvf(x / 4))      \\
          X(normcdfinvf(x / 4)) X(fmaf(x, x, 1)) X(__fmaf_rn(x, x, 1)) X(fminf(x, 1))          \\
          X(fmaxf(x, 1)) X(__fdividef(1, x)) X(__frcp_rn(x)) X(__saturatef(x)) X(powf(x, 3))   \\
          X(__powf(x, 3)) X(copysignf(x, -1)) X(sinpif(x)) X(cospif(x)) X(exp10f(x))           \\
          X(exp2f(x)) X(log2f(x)) X(log1pf(x)) X(expm1f(x)) X(cbrtf(x)) X(rcbrtf(x))           \\
          X(hypotf(x, 3)) X(erfcxf(x)) X(abs(-x)) X(max(x, 1.0f)) X(min(x, 1.0)) X(max(3, 5u)) \\
          X(isnan(x) + isinf(x / 0.0f)) X(ceilf(x)) X(floor(x)) X(rintf(x)) X(truncf(x))       \\
          X(fmodf(x, 0.7f)) X(__fadd_rz(x, 1e-9f) == x) X(__fadd_ru(x, 1e-9f) > x)             \\
          X(__fmul_rd(x, 1.1f)) X(__fdiv_rn(x, 3)) X(__fsqrt_rn(x)) X(norm3df(x, 1, 2))        \\
          X(lgammaf(x)) X(tgammaf(x)) X(atan2f(x, 2)) X(sinhf(x)) X(float(umin(3u, 2u)))
        __global__ void functions(float* y) {
          const float x = 0.25f + threadIdx.x * 0.375f;
          int i = threadIdx.x * 80;
        #define STORE(expression) y[i++] = expression;
          EACH(STORE)
        }
        KERNEL_ENTRY(mathematics, functions, 1, 8)
        #define COUNT(expression) +1
        extern "C" int function_count() { return EACH(COUNT); }
        """
    )


@VARIANTS
def test_mathematics(emulator, math_library, variant) -> None:
    library = math_library[variant]
    rows = emulator.call(library, "mathematics", 640).reshape(8, 80)
    x = 0.25 + np.arange(8) * 0.375
    t = torch.from_numpy(x)
    one = np.ones(8)
    normal = torch.distributions.Normal(torch.tensor(0.0).double(), 1.0)
    inside = x / 4 < 1
    expected = [
        np.exp(x), np.exp(x), np.log(x), np.log(x), np.exp(x), x**-0.5, x**-0.5, np.sqrt(x),
        np.tanh(x), torch.erf(t).numpy(), torch.erfc(t).numpy(), normal.cdf(t).numpy(),
        torch.erfinv(t / 4).numpy(), normal.icdf(t / 4).numpy(), x * x + 1, x * x + 1,
        np.minimum(x, 1), np.maximum(x, 1), 1 / x, 1 / x, np.clip(x, 0, 1), x**3, x**3, -x,
        np.sin(np.pi * x), np.cos(np.pi * x), 10**x, 2**x, np.log2(x), np.log1p(x), np.expm1(x),
        np.cbrt(x), 1 / np.cbrt(x), np.hypot(x, 3), torch.special.erfcx(t).numpy(), x,
        np.maximum(x, 1), np.minimum(x, 1), 5 * one, one, np.ceil(x), np.floor(x), np.rint(x),
        np.trunc(x), np.fmod(x.astype(np.float32), np.float32(0.7)), one, one,
        x * np.float32(1.1), x / 3, np.sqrt(x), np.sqrt(x * x + 5), torch.lgamma(t).numpy(),
        torch.exp(torch.lgamma(t)).numpy(), np.arctan2(x, 2), np.sinh(x), 2 * one,
    ]  # fmt: skip
    assert library.function_count() == len(expected)
    assert inside.all()
    for index, column in enumerate(expected):
        np.testing.assert_allclose(
            rows[:, index], column, rtol=3e-6, atol=2e-7, err_msg=f"function {index}"
        )


@VARIANTS
def test_integers_and_conversions(emulator, variant) -> None:
    library = emulator.load(
        """
        #include <cuda_runtime.h>
        #define EACH(X)                                                                             \\
          X(__popc(0xf0f0u), 8) X(__popcll(~0ull), 64) X(__clz(1), 31) X(__clz(0), 32)              \\
          X(__clzll(1), 63) X(__ffs(8), 4) X(__ffs(0), 0) X(__ffsll(1ll << 40), 41)                 \\
          X(__brev(1u) == 0x80000000u, 1) X(__brevll(2ull) == 1ull << 62, 1)                        \\
          X(__byte_perm(0x33221100, 0x77665544, 0x7210) == 0x77221100, 1)                           \\
          X(__funnelshift_l(0x80000000u, 1u, 1) == 3u, 1)                                           \\
          X(__funnelshift_r(0u, 1u, 4) == 0x10000000u, 1) X(__funnelshift_rc(7u, 9u, 40), 9)        \\
          X(__mulhi(1 << 30, 8), 2) X(__umulhi(0x80000000u, 6u), 3) X(__mul24(-3, 5), -15)          \\
          X(__mul64hi(-1ll, 1ll), -1) X(__umul64hi(1ull << 63, 4ull), 2) X(__sad(3, 8, 2u), 7)      \\
          X(__hadd(7, -2), 2) X(__rhadd(3, 4), 4) X(__dp4a(0x01020304, 0x01010101, 5), 15)          \\
          X(__float2int_rn(2.5f), 2) X(__float2int_rz(-2.7f), -2) X(__float2int_ru(2.1f), 3)        \\
          X(__float2int_rd(-2.1f), -3) X(__float2int_rn(1e20f) == 2147483647, 1)                    \\
          X(__float2uint_rn(-5.0f), 0) X(__float2int_rz(nanf("")), 0)                               \\
          X(__double2int_rn(3.5), 4) X(__double2ll_rz(-1e3), -1000)                                 \\
          X(__int2float_rn(16777217) == 16777216.0f, 1)                                             \\
          X(__int2float_ru(16777217) == 16777218.0f, 1)                                             \\
          X(__uint2float_rd(4294967295u) == 4294967040.0f, 1)                                       \\
          X(__float_as_int(1.0f) == 0x3f800000, 1) X(__int_as_float(0x40000000), 2)                 \\
          X(__longlong_as_double(__double_as_longlong(0.75)), 0.75f)                                \\
          X(__hiloint2double(__double2hiint(1.5), __double2loint(1.5)), 1.5f)                       \\
          X(__double2float_rz(1.0 - 1e-12) < 1.0f, 1) X(warpSize, 32)
        __global__ void checks(float* y) {
          int i = 0;
        #define STORE(expression, expected) y[i++] = (expression); y[i++] = (expected);
          EACH(STORE)
        }
        KERNEL_ENTRY(integers, checks, 1, 1)
        #define COUNT(expression, expected) +1
        extern "C" int check_count() { return EACH(COUNT); }
        """
    )[variant]
    pairs = emulator.call(library, "integers", 2 * library.check_count()).reshape(-1, 2)
    assert len(pairs) == 41
    assert np.array_equal(pairs[:, 0], pairs[:, 1]), np.flatnonzero(pairs[:, 0] != pairs[:, 1])


SMALL_FLOATS = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
// Conversions of all values, on the host: kernels and host code share them.
extern "C" void widen_half(const unsigned short* in, float* out, int n) {
  for (int i = 0; i < n; ++i) out[i] = __half2float(__ushort_as_half(in[i]));
}
extern "C" void narrow_half(const float* in, unsigned short* out, int n) {
  for (int i = 0; i < n; ++i) out[i] = __half_as_ushort(__float2half_rn(in[i]));
}
extern "C" void narrow_half_from_double(const double* in, unsigned short* out, int n) {
  for (int i = 0; i < n; ++i) out[i] = __half_as_ushort(__double2half(in[i]));
}
extern "C" void narrow_half_down(const float* in, unsigned short* out, int n) {
  for (int i = 0; i < n; ++i) out[i] = __half_as_ushort(__float2half_rd(in[i]));
}
extern "C" void widen_bfloat16(const unsigned short* in, float* out, int n) {
  for (int i = 0; i < n; ++i) out[i] = __bfloat162float(__ushort_as_bfloat16(in[i]));
}
extern "C" void narrow_bfloat16(const float* in, unsigned short* out, int n) {
  for (int i = 0; i < n; ++i) out[i] = __bfloat16_as_ushort(__float2bfloat16(in[i]));
}
template <class S>
__device__ void operations(S* y, S a, S b, S c) {
  y[0] = a + b; y[1] = a - b; y[2] = a * b; y[3] = a / b;
  y[4] = __hfma(a, b, c); y[5] = __hmax(a, b); y[6] = -a; y[7] = __habs(-a);
  y[8] = hexp(a); y[9] = hsqrt(a); y[10] = a < b ? a : b; y[11] = __hadd(a, b);
  y[12] = S(3); y[13] = static_cast<float>(a) * 2.0f; y[14] = a; y[14] += b; y[15] = hrcp(a);
}
__global__ void half_operations(float* y) {
  __shared__ half h[16];
  operations<half>(h, half(1.2345f), __float2half(0.3333f), __float2half(-2.5f));
  for (int i = 0; i < 16; ++i) y[i] = __half2float(h[i]);
  half2 p = __floats2half2_rn(1.5f, -2.25f), q = __float2half2_rn(0.1f);
  half2 r = __hfma2(p, q, __half2half2(__float2half(1.0f))), s = p * q + r;
  y[16] = __low2float(r); y[17] = __high2float(r); y[18] = __half22float2(s).x;
  y[19] = __half2float(__high2half(s)); y[20] = __half2int_rn(__float2half(2.5f));
  y[21] = __hgt(p.x, p.y) + 2 * __hbeq2(p, p); y[22] = __half2float(CUDART_INF_FP16) > 1e30f;
}
KERNEL_ENTRY(halves, half_operations, 1, 1)
__global__ void bfloat_operations(float* y) {
  __shared__ __nv_bfloat16 h[16];
  operations<__nv_bfloat16>(h, __nv_bfloat16(1.2345f), __float2bfloat16(0.3333f),
                            __float2bfloat16(-2.5f));
  for (int i = 0; i < 16; ++i) y[i] = __bfloat162float(h[i]);
  __nv_bfloat162 p = __floats2bfloat162_rn(1.5f, -2.25f);
  y[16] = __low2float(__hmul2(p, p)); y[17] = __bfloat1622float2(p + p).y;
}
KERNEL_ENTRY(bfloats, bfloat_operations, 1, 1)
"""


@pytest.fixture(scope="module")
def small_floats(emulator):
    return emulator.load(SMALL_FLOATS)


def converted(function, values: np.ndarray, dtype: type) -> np.ndarray:
    out = np.empty(len(values), dtype)
    function(values.ctypes.data_as(_P), out.ctypes.data_as(_P), len(values))
    return out


def interesting_floats() -> np.ndarray:
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2**32, 200_000, dtype=np.uint64).astype(np.uint32)
    halves = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    finite = halves[np.isfinite(halves)]
    ties = (np.sort(finite)[1:] + np.sort(finite)[:-1]) / 2
    edges = np.float32([0, -0.0, 65504, 65519.99, 65520, 1e-8, 2.9e-8, 3e-8, np.inf, -np.inf])
    values = np.concatenate([bits.view(np.float32), finite, ties, np.nextafter(ties, 9e9), edges])
    return np.ascontiguousarray(values[~np.isnan(values)], np.float32)


def test_every_half_widens_exactly(small_floats) -> None:
    bits = np.arange(65536, dtype=np.uint16)
    wide = converted(small_floats[Variant.FAST].widen_half, bits, np.float32)
    np.testing.assert_array_equal(wide, bits.view(np.float16).astype(np.float32))


@VARIANTS
def test_floats_round_to_the_nearest_half(small_floats, variant) -> None:
    values = interesting_floats()
    with np.errstate(over="ignore"):
        expected = values.astype(np.float16).view(np.uint16)
    np.testing.assert_array_equal(
        converted(small_floats[variant].narrow_half, values, np.uint16), expected
    )


def test_doubles_round_once(small_floats) -> None:
    ties = np.float64([1 + 2**-11 + 2**-40, 1 + 2**-11 - 2**-40, 1 + 2**-11, 2**-25 + 2**-60])
    values = np.concatenate([ties, -ties, np.random.default_rng(2).normal(size=10_000)])
    np.testing.assert_array_equal(
        converted(small_floats[Variant.FAST].narrow_half_from_double, values, np.uint16),
        values.astype(np.float16).view(np.uint16),
    )


def test_halves_rounded_down(small_floats) -> None:
    values = interesting_floats()
    values = values[np.abs(values) < 65504]
    down = converted(small_floats[Variant.FAST].narrow_half_down, values, np.uint16)
    down = down.view(np.float16)
    with np.errstate(over="ignore"):
        above = np.nextafter(down, np.float16(np.inf)).astype(np.float32)
    assert (down.astype(np.float32) <= values).all()
    assert (above > values).all()


def test_bfloat16(small_floats) -> None:
    library = small_floats[Variant.FAST]
    values = interesting_floats()
    expected = torch.from_numpy(values).to(torch.bfloat16)
    bits = converted(library.narrow_bfloat16, values, np.uint16)
    np.testing.assert_array_equal(bits.view(np.int16), expected.view(torch.int16).numpy())
    wide = converted(library.widen_bfloat16, bits, np.float32)
    np.testing.assert_array_equal(wide, expected.float().numpy())


@VARIANTS
@pytest.mark.parametrize(
    ("entry", "dtype", "count"), [("halves", torch.float16, 23), ("bfloats", torch.bfloat16, 18)]
)
def test_each_operation_rounds(emulator, small_floats, variant, entry, dtype, count) -> None:
    values = emulator.call(small_floats[variant], entry, count)
    a, b, c = (torch.tensor(x).to(dtype) for x in (1.2345, 0.3333, -2.5))
    wide = (a.double() * b.double() + c.double()).to(dtype)
    expected = [a + b, a - b, a * b, a / b, wide, a, -a, a, a.float().exp().to(dtype)]
    expected += [a.sqrt(), b, a + b, torch.tensor(3.0), (a.float() * 2).to(dtype), a + b]
    expected += [a.reciprocal()]
    np.testing.assert_array_equal(values[:16], [float(x) for x in expected])
    p = torch.tensor([1.5, -2.25]).to(dtype)
    if dtype is torch.float16:
        q = torch.tensor(0.1).to(dtype)
        r = (p.double() * q.double() + 1).to(dtype)
        s = p * q + r
        np.testing.assert_array_equal(values[16:20], [*r.tolist(), *s.tolist()])
        assert list(values[20:]) == [2, 3, 1]
    else:
        assert list(values[16:]) == [2.25, -4.5]


def test_torch_switches_implicit_conversions_off(emulator) -> None:
    # PyTorch compiles extensions with these macros: what does not compile there must not here.
    flags = ("-D__CUDA_NO_HALF_OPERATORS__", "-D__CUDA_NO_HALF_CONVERSIONS__")
    good = "#include <cuda_fp16.h>\n__device__ half f(half a) { return __hadd(a, a); }"
    bad = "#include <cuda_fp16.h>\n__device__ half f(half a) { return a + a; }"
    assert emulator.compile(good, Variant.FAST, flags).exists()
    assert emulator.compile(bad, Variant.FAST).exists()
    with pytest.raises(AssertionError, match="no match for"):
        emulator.compile(bad, Variant.FAST, flags)
