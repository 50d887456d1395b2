// Conversions between float and the 16-bit formats, correctly rounded.
#pragma once

#include "integer.h"
#include "math.h"

namespace kgemu {

// IEEE binary16: 5 bits of exponent, 10 of fraction.
struct Binary16 {
  static unsigned short nearest(float value) {
    unsigned bits = bits_as<unsigned>(value);
    const unsigned sign = (bits >> 16) & 0x8000u;
    bits &= 0x7fffffffu;
    if (bits > 0x7f800000u) return 0x7fffu;                                      // NaN
    if (bits >= 0x477ff000u) return static_cast<unsigned short>(sign | 0x7c00u);  // 65520 and more
    if (bits < 0x38800000u) {
      // Subnormal: the last digit of 0.5 + x is that of the result.
      const unsigned shifted = bits_as<unsigned>(bits_as<float>(bits) + 0.5f);
      return static_cast<unsigned short>(sign | (shifted - 0x3f000000u));
    }
    bits += 0xfffu + ((bits >> 13) & 1u);
    return static_cast<unsigned short>(sign | ((bits - 0x38000000u) >> 13));
  }
  static float widen(unsigned short half) {
    unsigned bits = (half & 0x7fffu) << 13;
    const unsigned exponent = bits & 0x0f800000u;
    bits += 0x38000000u;
    if (exponent == 0x0f800000u) bits += 0x38000000u;  // infinity, NaN
    if (exponent == 0u) {                              // zero, subnormal
      bits = bits_as<unsigned>(bits_as<float>(bits + 0x00800000u) - 6.103515625e-05f);
    }
    return bits_as<float>(bits | ((half & 0x8000u) << 16));
  }
};

// bfloat16: the upper half of a float.
struct Brain16 {
  static unsigned short nearest(float value) {
    const unsigned bits = bits_as<unsigned>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;
    return static_cast<unsigned short>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  }
  static float widen(unsigned short half) {
    return bits_as<float>(static_cast<unsigned>(half) << 16);
  }
};

// A double as a float that rounds on to 16 bits as the double itself would: to odd.
inline float to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || value != value) return nearest;
  const float inner = __builtin_fabs(static_cast<double>(nearest)) > __builtin_fabs(value)
                          ? __builtin_nextafterf(nearest, 0.0f)
                          : nearest;
  return bits_as<float>(bits_as<unsigned>(inner) | 1u);
}

// Rounds towards zero, up or down.
template <class Format>
inline unsigned short directed(float value, Rounding mode) {
  const unsigned short half = Format::nearest(value);
  const float back = Format::widen(half);
  const bool negative = back < 0.0f || (back == 0.0f && value < 0.0f);
  const bool down = mode == Rounding::down || (mode == Rounding::zero && !negative);
  const bool up = mode == Rounding::up || (mode == Rounding::zero && negative);
  if (back > value && down) {
    if ((half & 0x7fffu) == 0u) return 0x8001u;
    return static_cast<unsigned short>(negative ? half + 1 : half - 1);
  }
  if (back < value && up) {
    if ((half & 0x7fffu) == 0u) return 0x0001u;
    return static_cast<unsigned short>(negative ? half - 1 : half + 1);
  }
  return half;
}

}  // namespace kgemu

// A 16-bit type `S` of that format, and its pair `S2`. Under CUDA's own `no_conversions` macros
// (which PyTorch sets) the implicit conversions are left out, as CUDA's headers do.
#define KGEMU_SMALL_FLOAT_BEGIN(S, Format)                                                 \
  struct alignas(2) S {                                                                    \
    unsigned short kgemu_bits;                                                             \
    S() = default;                                                                         \
    static S kgemu_from_bits(unsigned short bits) {                                        \
      S result;                                                                            \
      result.kgemu_bits = bits;                                                            \
      return result;                                                                       \
    }                                                                                      \
    static S kgemu_from(float value) { return kgemu_from_bits(Format::nearest(value)); }   \
    static S kgemu_from(double value) {                                                    \
      return kgemu_from_bits(Format::nearest(kgemu::to_odd(value)));                       \
    }                                                                                      \
    static S kgemu_from(float value, kgemu::Rounding mode) {                               \
      return kgemu_from_bits(kgemu::directed<Format>(value, mode));                        \
    }                                                                                      \
    float kgemu_float() const { return Format::widen(kgemu_bits); }
#define KGEMU_SMALL_FLOAT_CONVERSIONS(S)                                                   \
    S(float value) : S(kgemu_from(value)) {}                                               \
    template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>             \
    S(T value) : S(kgemu_from(static_cast<double>(value))) {}                              \
    operator float() const { return kgemu_float(); }
#define KGEMU_SMALL_FLOAT_END(S, S2)                                                       \
  };                                                                                       \
  struct alignas(4) S2 {                                                                   \
    S x, y;                                                                                \
    S2() = default;                                                                        \
    S2(S x, S y) : x(x), y(y) {}                                                           \
  };
