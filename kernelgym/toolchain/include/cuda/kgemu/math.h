// CUDA's mathematical functions beyond those of <math.h>, and its fast ones. Everything is computed
// in IEEE arithmetic of the host: fast intrinsics are at least as accurate as on the device.
#pragma once

#include <math.h>
#include <stdlib.h>

#include "qualifiers.h"

// --- min and max: CUDA's list of overloads; other mixtures are as ambiguous as there --------------

#define KGEMU_MIN_MAX(A, B, R)                                                                   \
  KGEMU_INLINE constexpr R min(A a, B b) { return static_cast<R>(a) < static_cast<R>(b) ? a : b; } \
  KGEMU_INLINE constexpr R max(A a, B b) { return static_cast<R>(a) > static_cast<R>(b) ? a : b; }
#define KGEMU_MIN_MAX_INTEGERS(S, U) \
  KGEMU_MIN_MAX(S, S, S)             \
  KGEMU_MIN_MAX(U, U, U)             \
  KGEMU_MIN_MAX(S, U, U)             \
  KGEMU_MIN_MAX(U, S, U)
KGEMU_MIN_MAX_INTEGERS(int, unsigned int)
KGEMU_MIN_MAX_INTEGERS(long, unsigned long)
KGEMU_MIN_MAX_INTEGERS(long long, unsigned long long)
#undef KGEMU_MIN_MAX_INTEGERS
#undef KGEMU_MIN_MAX

// A NaN gives way to the other operand.
KGEMU_INLINE float min(float a, float b) { return __builtin_fminf(a, b); }
KGEMU_INLINE float max(float a, float b) { return __builtin_fmaxf(a, b); }
KGEMU_INLINE double min(double a, double b) { return __builtin_fmin(a, b); }
KGEMU_INLINE double max(double a, double b) { return __builtin_fmax(a, b); }
KGEMU_INLINE double min(float a, double b) { return __builtin_fmin(a, b); }
KGEMU_INLINE double max(float a, double b) { return __builtin_fmax(a, b); }
KGEMU_INLINE double min(double a, float b) { return __builtin_fmin(a, b); }
KGEMU_INLINE double max(double a, float b) { return __builtin_fmax(a, b); }
KGEMU_INLINE constexpr unsigned int umin(unsigned int a, unsigned int b) { return a < b ? a : b; }
KGEMU_INLINE constexpr unsigned int umax(unsigned int a, unsigned int b) { return a > b ? a : b; }
KGEMU_INLINE constexpr long long llmin(long long a, long long b) { return a < b ? a : b; }
KGEMU_INLINE constexpr long long llmax(long long a, long long b) { return a > b ? a : b; }
KGEMU_INLINE constexpr unsigned long long ullmin(unsigned long long a, unsigned long long b) {
  return a < b ? a : b;
}
KGEMU_INLINE constexpr unsigned long long ullmax(unsigned long long a, unsigned long long b) {
  return a > b ? a : b;
}

// --- functions that C does not have -----------------------------------------------------------------

namespace kgemu {
constexpr double pi = 3.14159265358979323846;

// sin(pi x) and cos(pi x), exact where the result is 0 or +-1.
inline double sin_pi(double x) {
  const double r = ::fmod(x, 2.0);
  return r == 0.0 || r == 1.0 || r == -1.0 ? ::copysign(0.0, x) : ::sin(pi * r);
}
inline double cos_pi(double x) {
  const double r = ::fabs(::fmod(x, 2.0));
  return r == 0.5 || r == 1.5 ? 0.0 : ::cos(pi * r);
}

// Inverse of erf: a rational start (Giles, 2010) and two steps of Newton's method.
inline double inverse_erf(double y) {
  if (!(y > -1.0 && y < 1.0)) return y == 1.0 || y == -1.0 ? y * __builtin_inf() : __builtin_nan("");
  double w = -::log((1.0 - y) * (1.0 + y));
  double x;
  if (w < 5.0) {
    w -= 2.5;
    x = 2.81022636e-08;
    for (double c : {3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
                     -0.00417768164, 0.246640727, 1.50140941})
      x = c + x * w;
  } else {
    w = ::sqrt(w) - 3.0;
    x = -0.000200214257;
    for (double c : {0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
                     0.00943887047, 1.00167406, 2.83297682})
      x = c + x * w;
  }
  x *= y;
  for (int step = 0; step < 2; ++step) {
    // In the tails the difference of complements keeps the digits.
    const double error = ::fabs(y) < 0.5 ? ::erf(x) - y
                         : y > 0         ? (1.0 - y) - ::erfc(x)
                                         : ::erfc(-x) - (1.0 + y);
    x -= error / (1.1283791670955126 * ::exp(-x * x));
  }
  return x;
}
// Inverse of erfc, also where the result is so near to 0 or 2 that 1 - y has no digits left.
inline double inverse_erfc(double y) {
  if (y > 0.0625) return inverse_erf(1.0 - y);
  if (y <= 0.0) return y == 0.0 ? __builtin_inf() : __builtin_nan("");
  double x = ::sqrt(-::log(y));
  for (int step = 0; step < 8; ++step) {
    const double error = ::erfc(x) - y;
    const double slope = -1.1283791670955126 * ::exp(-x * x);
    const double newton = error / slope;
    x -= newton / (1.0 + x * newton);  // Halley's
  }
  return x;
}
inline double scaled_erfc(double x) {
  if (x < 20.0) return ::exp(x * x) * ::erfc(x);
  const double r = 1.0 / (x * x);
  return (1.0 - 0.5 * r * (1.0 - 1.5 * r * (1.0 - 2.5 * r))) / (x * 1.7724538509055160);
}
}  // namespace kgemu

// Both precisions of a function of one argument, from an expression in double, and the overload
// for float.
#define KGEMU_MATH_1(name, expression)                                                 \
  inline double name(double x) { return expression; }                                  \
  inline float name##f(float x_) {                                                     \
    const double x = x_;                                                               \
    return static_cast<float>(expression);                                             \
  }                                                                                    \
  inline float name(float x) { return name##f(x); }

KGEMU_MATH_1(rsqrt, 1.0 / ::sqrt(x))
KGEMU_MATH_1(rcbrt, 1.0 / ::cbrt(x))
KGEMU_MATH_1(sinpi, kgemu::sin_pi(x))
KGEMU_MATH_1(cospi, kgemu::cos_pi(x))
KGEMU_MATH_1(erfinv, kgemu::inverse_erf(x))
KGEMU_MATH_1(erfcinv, kgemu::inverse_erfc(x))
KGEMU_MATH_1(erfcx, kgemu::scaled_erfc(x))
KGEMU_MATH_1(normcdf, 0.5 * ::erfc(-x * 0.70710678118654752440))
KGEMU_MATH_1(normcdfinv, -1.41421356237309504880 * kgemu::inverse_erfc(2.0 * x))
KGEMU_MATH_1(cyl_bessel_i0, std::cyl_bessel_i(0.0, ::fabs(x)))
KGEMU_MATH_1(cyl_bessel_i1, ::copysign(std::cyl_bessel_i(1.0, ::fabs(x)), x))
#undef KGEMU_MATH_1

#ifdef __USE_GNU  // exp10 and sincos are glibc's
inline float exp10(float x) { return ::exp10f(x); }
inline void sincos(float x, float* s, float* c) { ::sincosf(x, s, c); }
#endif
inline void sincospi(double x, double* s, double* c) {
  *s = kgemu::sin_pi(x);
  *c = kgemu::cos_pi(x);
}
inline void sincospif(float x, float* s, float* c) {
  *s = sinpif(x);
  *c = cospif(x);
}
inline double rhypot(double x, double y) { return 1.0 / ::hypot(x, y); }
inline float rhypotf(float x, float y) { return static_cast<float>(1.0 / ::hypot(double(x), double(y))); }
inline double norm3d(double a, double b, double c) { return ::sqrt(a * a + b * b + c * c); }
inline double norm4d(double a, double b, double c, double d) {
  return ::sqrt(a * a + b * b + c * c + d * d);
}
inline double rnorm3d(double a, double b, double c) { return 1.0 / norm3d(a, b, c); }
inline double rnorm4d(double a, double b, double c, double d) { return 1.0 / norm4d(a, b, c, d); }
inline float norm3df(float a, float b, float c) { return static_cast<float>(norm3d(a, b, c)); }
inline float norm4df(float a, float b, float c, float d) {
  return static_cast<float>(norm4d(a, b, c, d));
}
inline float rnorm3df(float a, float b, float c) { return static_cast<float>(rnorm3d(a, b, c)); }
inline float rnorm4df(float a, float b, float c, float d) {
  return static_cast<float>(rnorm4d(a, b, c, d));
}
inline float fdividef(float a, float b) { return a / b; }
inline float fdivide(float a, float b) { return a / b; }
inline double fdivide(double a, double b) { return a / b; }

// --- fast functions -----------------------------------------------------------------------------------

inline float __expf(float x) { return ::expf(x); }
inline float __exp10f(float x) { return static_cast<float>(::pow(10.0, double(x))); }
inline float __logf(float x) { return ::logf(x); }
inline float __log2f(float x) { return ::log2f(x); }
inline float __log10f(float x) { return ::log10f(x); }
inline float __sinf(float x) { return ::sinf(x); }
inline float __cosf(float x) { return ::cosf(x); }
inline float __tanf(float x) { return ::tanf(x); }
inline float __tanhf(float x) { return ::tanhf(x); }
inline float __powf(float x, float y) { return ::powf(x, y); }
inline void __sincosf(float x, float* s, float* c) {
  *s = ::sinf(x);
  *c = ::cosf(x);
}
KGEMU_INLINE float __fdividef(float a, float b) { return a / b; }
KGEMU_INLINE float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

// --- arithmetic with a given rounding -------------------------------------------------------------------

namespace kgemu {
enum class Rounding { nearest, zero, up, down };

// The float that `high + low` rounds to, where |low| is below the last digit of `high`.
inline float round_to_float(double high, double low, Rounding mode) {
  const float nearest = static_cast<float>(high);
  if (mode == Rounding::nearest || !(high - high == 0.0)) return nearest;
  const double rest = (high - nearest) + low;
  const bool negative = high < 0.0;
  const bool down = mode == Rounding::down || (mode == Rounding::zero && !negative);
  const bool up = mode == Rounding::up || (mode == Rounding::zero && negative);
  if (rest < 0.0 && down) return ::nextafterf(nearest, -__builtin_inff());
  if (rest > 0.0 && up) return ::nextafterf(nearest, __builtin_inff());
  return nearest;
}
inline float add(float a, float b, Rounding mode) {
  const double sum = double(a) + double(b);
  const double part = sum - double(a);
  const double low = (double(a) - (sum - part)) + (double(b) - part);
  return round_to_float(sum, low, mode);
}
inline float multiply(float a, float b, Rounding mode) {
  return round_to_float(double(a) * double(b), 0.0, mode);
}
inline float multiply_add(float a, float b, float c, Rounding mode) {
  if (mode == Rounding::nearest) return ::fmaf(a, b, c);
  const double product = double(a) * double(b);
  const double sum = product + double(c);
  const double part = sum - product;
  return round_to_float(sum, (product - (sum - part)) + (double(c) - part), mode);
}
inline float divide(float a, float b, Rounding mode) {
  if (mode == Rounding::nearest) return a / b;
  const double quotient = double(a) / double(b);
  const double rest = ::fma(-quotient, double(b), double(a));
  return round_to_float(quotient, b < 0.0f ? -rest : rest, mode);
}
inline float square_root(float a, Rounding mode) {
  if (mode == Rounding::nearest) return __builtin_sqrtf(a);
  const double root = ::sqrt(double(a));
  return round_to_float(root, ::fma(-root, root, double(a)), mode);
}
}  // namespace kgemu

#define KGEMU_ROUNDED(suffix, mode)                                                              \
  inline float __fadd_##suffix(float a, float b) { return kgemu::add(a, b, mode); }              \
  inline float __fsub_##suffix(float a, float b) { return kgemu::add(a, -b, mode); }             \
  inline float __fmul_##suffix(float a, float b) { return kgemu::multiply(a, b, mode); }         \
  inline float __fdiv_##suffix(float a, float b) { return kgemu::divide(a, b, mode); }           \
  inline float __frcp_##suffix(float a) { return kgemu::divide(1.0f, a, mode); }                 \
  inline float __fsqrt_##suffix(float a) { return kgemu::square_root(a, mode); }                 \
  inline float __fmaf_##suffix(float a, float b, float c) {                                      \
    return kgemu::multiply_add(a, b, c, mode);                                                   \
  }
KGEMU_ROUNDED(rn, kgemu::Rounding::nearest)
KGEMU_ROUNDED(rz, kgemu::Rounding::zero)
KGEMU_ROUNDED(ru, kgemu::Rounding::up)
KGEMU_ROUNDED(rd, kgemu::Rounding::down)
#undef KGEMU_ROUNDED
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __drcp_rn(double a) { return 1.0 / a; }
inline double __dsqrt_rn(double a) { return ::sqrt(a); }
inline double __fma_rn(double a, double b, double c) { return ::fma(a, b, c); }
