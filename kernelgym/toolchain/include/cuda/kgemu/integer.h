// Integer intrinsics, conversions with a given rounding, and reinterpreting casts.
#pragma once

#include <math.h>

#include "qualifiers.h"

KGEMU_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
KGEMU_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
KGEMU_INLINE int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
KGEMU_INLINE int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
KGEMU_INLINE int __ffs(int x) { return __builtin_ffs(x); }
KGEMU_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  x = ((x >> 1) & 0x55555555u) | ((x & 0x55555555u) << 1);
  x = ((x >> 2) & 0x33333333u) | ((x & 0x33333333u) << 2);
  x = ((x >> 4) & 0x0f0f0f0fu) | ((x & 0x0f0f0f0fu) << 4);
  return __builtin_bswap32(x);
}
inline unsigned long long __brevll(unsigned long long x) {
  return (static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32) |
         __brev(static_cast<unsigned>(x >> 32));
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = (static_cast<unsigned long long>(y) << 32) | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned choice = (selector >> (4 * i)) & 15u;
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (choice & 7u))) & 255u;
    if (choice & 8u) byte = byte & 128u ? 255u : 0u;  // replicate the sign
    result |= byte << (8 * i);
  }
  return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = (static_cast<unsigned long long>(high) << 32) | low;
  return static_cast<unsigned>((both << (shift & 31u)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = (static_cast<unsigned long long>(high) << 32) | low;
  return static_cast<unsigned>(both >> (shift & 31u));
}
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32u ? low : __funnelshift_l(low, high, shift);
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32u ? high : __funnelshift_r(low, high, shift);
}
KGEMU_INLINE int __mulhi(int a, int b) {
  return static_cast<int>((static_cast<long long>(a) * b) >> 32);
}
KGEMU_INLINE unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) * b) >> 32);
}
KGEMU_INLINE long long __mul64hi(long long a, long long b) {
  return static_cast<long long>((static_cast<__int128>(a) * b) >> 64);
}
KGEMU_INLINE unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}
KGEMU_INLINE int __mul24(int a, int b) {
  return static_cast<int>(static_cast<long long>((a << 8) >> 8) * ((b << 8) >> 8));
}
KGEMU_INLINE unsigned __umul24(unsigned a, unsigned b) {
  return (a & 0xffffffu) * (b & 0xffffffu);
}
KGEMU_INLINE unsigned __sad(int a, int b, unsigned c) {
  const long long difference = static_cast<long long>(a) - b;
  return static_cast<unsigned>(difference < 0 ? -difference : difference) + c;
}
KGEMU_INLINE unsigned __usad(unsigned a, unsigned b, unsigned c) { return (a > b ? a - b : b - a) + c; }
KGEMU_INLINE int __hadd(int a, int b) {
  return static_cast<int>((static_cast<long long>(a) + b) >> 1);
}
KGEMU_INLINE int __rhadd(int a, int b) {
  return static_cast<int>((static_cast<long long>(a) + b + 1) >> 1);
}
KGEMU_INLINE unsigned __uhadd(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) + b) >> 1);
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 32; i += 8)
    c += static_cast<signed char>(a >> i) * static_cast<signed char>(b >> i);
  return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 32; i += 8) c += ((a >> i) & 255u) * ((b >> i) & 255u);
  return c;
}

// --- the same bits as another type ------------------------------------------------------------------

namespace kgemu {
template <class To, class From>
KGEMU_INLINE To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From), "types of one size");
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}

// Conversion as the device does it: out of range saturates, NaN is 0 (0x80000000 in 64 bits).
template <class To, class From>
inline To saturate(From x) {
  constexpr bool is_signed = static_cast<To>(-1) < static_cast<To>(0);
  constexpr int bits = 8 * sizeof(To) - (is_signed ? 1 : 0);
  constexpr To highest = static_cast<To>(~0ull >> (64 - bits));
  constexpr To lowest = is_signed ? static_cast<To>(-highest - 1) : static_cast<To>(0);
  if (x != x) return sizeof(To) == 8 ? static_cast<To>(1ull << 63) : static_cast<To>(0);
  if (x >= ::ldexp(From(1), bits)) return highest;
  if (x <= static_cast<From>(lowest)) return lowest;
  return static_cast<To>(x);
}

// An integer as a float, rounded in a given direction.
template <class To, class From>
inline To integer_rounded(From value, int direction) {  // -1 down, 0 towards zero, 1 up
  const To nearest = static_cast<To>(value);
  const __int128 difference = static_cast<__int128>(nearest) - static_cast<__int128>(value);
  if (direction == 0) direction = value < 0 ? 1 : -1;
  if (direction < 0 && difference > 0) return ::nextafter(nearest, -To(__builtin_inf()));
  if (direction > 0 && difference < 0) return ::nextafter(nearest, To(__builtin_inf()));
  return nearest;
}
}  // namespace kgemu

KGEMU_INLINE int __float_as_int(float x) { return kgemu::bits_as<int>(x); }
KGEMU_INLINE unsigned __float_as_uint(float x) { return kgemu::bits_as<unsigned>(x); }
KGEMU_INLINE float __int_as_float(int x) { return kgemu::bits_as<float>(x); }
KGEMU_INLINE float __uint_as_float(unsigned x) { return kgemu::bits_as<float>(x); }
KGEMU_INLINE long long __double_as_longlong(double x) { return kgemu::bits_as<long long>(x); }
KGEMU_INLINE double __longlong_as_double(long long x) { return kgemu::bits_as<double>(x); }
KGEMU_INLINE int __double2hiint(double x) {
  return static_cast<int>(kgemu::bits_as<unsigned long long>(x) >> 32);
}
KGEMU_INLINE int __double2loint(double x) {
  return static_cast<int>(kgemu::bits_as<unsigned long long>(x));
}
KGEMU_INLINE double __hiloint2double(int high, int low) {
  return kgemu::bits_as<double>((static_cast<unsigned long long>(static_cast<unsigned>(high)) << 32) |
                                static_cast<unsigned>(low));
}

#define KGEMU_TO_INTEGER(From, from, To, to)                                                     \
  inline To __##from##2##to##_rn(From x) { return kgemu::saturate<To>(__builtin_nearbyint(x)); } \
  inline To __##from##2##to##_rz(From x) { return kgemu::saturate<To>(__builtin_trunc(x)); }     \
  inline To __##from##2##to##_ru(From x) { return kgemu::saturate<To>(__builtin_ceil(x)); }      \
  inline To __##from##2##to##_rd(From x) { return kgemu::saturate<To>(__builtin_floor(x)); }
#define KGEMU_FROM_INTEGER(From, from, To, to)                                                    \
  inline To __##from##2##to##_rn(From x) { return static_cast<To>(x); }                           \
  inline To __##from##2##to##_rz(From x) { return kgemu::integer_rounded<To>(x, 0); }             \
  inline To __##from##2##to##_ru(From x) { return kgemu::integer_rounded<To>(x, 1); }             \
  inline To __##from##2##to##_rd(From x) { return kgemu::integer_rounded<To>(x, -1); }

KGEMU_TO_INTEGER(float, float, int, int)
KGEMU_TO_INTEGER(float, float, unsigned, uint)
KGEMU_TO_INTEGER(float, float, long long, ll)
KGEMU_TO_INTEGER(float, float, unsigned long long, ull)
KGEMU_TO_INTEGER(double, double, int, int)
KGEMU_TO_INTEGER(double, double, unsigned, uint)
KGEMU_TO_INTEGER(double, double, long long, ll)
KGEMU_TO_INTEGER(double, double, unsigned long long, ull)
KGEMU_FROM_INTEGER(int, int, float, float)
KGEMU_FROM_INTEGER(unsigned, uint, float, float)
KGEMU_FROM_INTEGER(long long, ll, float, float)
KGEMU_FROM_INTEGER(unsigned long long, ull, float, float)
KGEMU_FROM_INTEGER(long long, ll, double, double)
KGEMU_FROM_INTEGER(unsigned long long, ull, double, double)
#undef KGEMU_TO_INTEGER
#undef KGEMU_FROM_INTEGER

inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }
inline float __double2float_rn(double x) { return static_cast<float>(x); }
inline float __double2float_rz(double x) {
  const float nearest = static_cast<float>(x);
  const bool beyond = __builtin_fabs(static_cast<double>(nearest)) > __builtin_fabs(x);
  return beyond ? __builtin_nextafterf(nearest, 0.0f) : nearest;
}
