// __half and __half2.
#pragma once

#include "kgemu/memory.h"
#include "kgemu/small_float.h"

KGEMU_SMALL_FLOAT_BEGIN(__half, kgemu::Binary16)
#ifndef __CUDA_NO_HALF_CONVERSIONS__
KGEMU_SMALL_FLOAT_CONVERSIONS(__half)
#endif
KGEMU_SMALL_FLOAT_END(__half, __half2)

struct __half_raw {
  unsigned short x;
  operator __half() const { return __half::kgemu_from_bits(x); }
};
typedef __half half;
typedef __half2 half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;

#define KGEMU_S __half
#define KGEMU_S2 __half2
#define KGEMU_N half
#define KGEMU_N2 half2
#ifndef __CUDA_NO_HALF_OPERATORS__
#define KGEMU_S_OPERATORS
#endif
#ifndef __CUDA_NO_HALF2_OPERATORS__
#define KGEMU_S2_OPERATORS
#endif
#include "kgemu/small_float_arithmetic.inc"
#include "kgemu/small_float_conversions.inc"
#undef KGEMU_S2_OPERATORS
#undef KGEMU_S_OPERATORS
#undef KGEMU_N2
#undef KGEMU_N
#undef KGEMU_S2
#undef KGEMU_S

inline __half2 make_half2(__half x, __half y) { return {x, y}; }
inline short __half_as_short(__half x) { return static_cast<short>(x.kgemu_bits); }
inline unsigned short __half_as_ushort(__half x) { return x.kgemu_bits; }
inline __half __short_as_half(short x) {
  return __half::kgemu_from_bits(static_cast<unsigned short>(x));
}
inline __half __ushort_as_half(unsigned short x) { return __half::kgemu_from_bits(x); }

#define CUDART_INF_FP16 __ushort_as_half(0x7c00u)
#define CUDART_NAN_FP16 __ushort_as_half(0x7fffu)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7bffu)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(0x0001u)
#define CUDART_ZERO_FP16 __ushort_as_half(0x0000u)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half(0x8000u)
#define CUDART_ONE_FP16 __ushort_as_half(0x3c00u)
