// __nv_bfloat16 and __nv_bfloat162.
#pragma once

#include "kgemu/memory.h"
#include "kgemu/small_float.h"

KGEMU_SMALL_FLOAT_BEGIN(__nv_bfloat16, kgemu::Brain16)
#ifndef __CUDA_NO_BFLOAT16_CONVERSIONS__
KGEMU_SMALL_FLOAT_CONVERSIONS(__nv_bfloat16)
#endif
KGEMU_SMALL_FLOAT_END(__nv_bfloat16, __nv_bfloat162)

struct __nv_bfloat16_raw {
  unsigned short x;
  operator __nv_bfloat16() const { return __nv_bfloat16::kgemu_from_bits(x); }
};
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

#define KGEMU_S __nv_bfloat16
#define KGEMU_S2 __nv_bfloat162
#define KGEMU_N bfloat16
#define KGEMU_N2 bfloat162
#ifndef __CUDA_NO_BFLOAT16_OPERATORS__
#define KGEMU_S_OPERATORS
#endif
#ifndef __CUDA_NO_BFLOAT162_OPERATORS__
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

inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline short __bfloat16_as_short(__nv_bfloat16 x) { return static_cast<short>(x.kgemu_bits); }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.kgemu_bits; }
inline __nv_bfloat16 __short_as_bfloat16(short x) {
  return __nv_bfloat16::kgemu_from_bits(static_cast<unsigned short>(x));
}
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short x) {
  return __nv_bfloat16::kgemu_from_bits(x);
}

#define CUDART_INF_BF16 __ushort_as_bfloat16(0x7f80u)
#define CUDART_NAN_BF16 __ushort_as_bfloat16(0x7fffu)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(0x0000u)
#define CUDART_ONE_BF16 __ushort_as_bfloat16(0x3f80u)
