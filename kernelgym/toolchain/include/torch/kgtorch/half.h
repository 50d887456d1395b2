// at::Half and at::BFloat16: two bytes each, laid out as __half and __nv_bfloat16.
#pragma once
#ifdef KGTORCH_KIT  // inline functions are compiled once, in an object of their own
#pragma interface
#endif
#include <limits>
#include <type_traits>

#include "macros.h"

struct __half;
struct __nv_bfloat16;

namespace c10 {
namespace detail {

C10_HOST_DEVICE inline uint32_t float_bits(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, 4);
  return bits;
}

C10_HOST_DEVICE inline float bits_float(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}

// IEEE binary16 from binary32, round to nearest even.
C10_HOST_DEVICE inline uint16_t half_from_float(float value) {
  const uint32_t bits = float_bits(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    // Subnormal: adding 0.5 aligns the mantissa, and the addition rounds to nearest even.
    const float shifted = bits_float(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (float_bits(shifted) - 0x3f000000u));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

C10_HOST_DEVICE inline float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t rest = half & 0x7fffu;
  if (rest >= 0x7c00u) return bits_float(sign | 0x7f800000u | ((rest & 0x3ffu) << 13));
  if (rest >= 0x0400u) return bits_float(sign | ((rest << 13) + 0x38000000u));
  const float magnitude = static_cast<float>(rest) * 5.9604644775390625e-8f;  // 2^-24
  return bits_float(sign | float_bits(magnitude));
}

C10_HOST_DEVICE inline uint16_t bfloat16_from_float(float value) {
  const uint32_t bits = float_bits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0u;
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

C10_HOST_DEVICE inline float bfloat16_to_float(uint16_t bits) {
  return bits_float(static_cast<uint32_t>(bits) << 16);
}

}  // namespace detail

// The CUDA type is only named here: its conversions exist where its header has been included.
#define KGTORCH_DEFINE_FLOAT16(NAME, CUDA_TYPE, FROM_FLOAT, TO_FLOAT, EXPLICIT)                    \
  struct alignas(2) NAME {                                                                         \
    uint16_t x;                                                                                    \
    struct from_bits_t {};                                                                         \
    C10_HOST_DEVICE static constexpr from_bits_t from_bits() { return {}; }                        \
    NAME() = default;                                                                              \
    constexpr C10_HOST_DEVICE NAME(uint16_t bits, from_bits_t) : x(bits) {}                        \
    C10_HOST_DEVICE NAME(float value) : x(detail::FROM_FLOAT(value)) {}                            \
    template <class T, std::enable_if_t<std::is_same_v<T, CUDA_TYPE>, int> = 0>                    \
    C10_HOST_DEVICE NAME(const T& value) {                                                         \
      __builtin_memcpy(&x, &value, 2);                                                             \
    }                                                                                              \
    C10_HOST_DEVICE operator float() const { return detail::TO_FLOAT(x); }                         \
    template <class T, std::enable_if_t<std::is_same_v<T, CUDA_TYPE>, int> = 0>                    \
    C10_HOST_DEVICE EXPLICIT operator T() const {                                                  \
      T value;                                                                                     \
      __builtin_memcpy(&value, &x, 2);                                                             \
      return value;                                                                                \
    }                                                                                              \
  };                                                                                               \
  KGTORCH_FLOAT16_OPERATOR(NAME, +)                                                                \
  KGTORCH_FLOAT16_OPERATOR(NAME, -)                                                                \
  KGTORCH_FLOAT16_OPERATOR(NAME, *)                                                                \
  KGTORCH_FLOAT16_OPERATOR(NAME, /)                                                                \
  KGTORCH_FLOAT16_COMPARISON(NAME, <)                                                              \
  KGTORCH_FLOAT16_COMPARISON(NAME, <=)                                                             \
  KGTORCH_FLOAT16_COMPARISON(NAME, >)                                                              \
  KGTORCH_FLOAT16_COMPARISON(NAME, >=)                                                             \
  KGTORCH_FLOAT16_COMPARISON(NAME, ==)                                                             \
  KGTORCH_FLOAT16_COMPARISON(NAME, !=)                                                             \
  C10_HOST_DEVICE inline NAME operator-(const NAME& a) { return NAME(-static_cast<float>(a)); }

// Templates, so that nothing is converted to compare: `half > 0.5f` compares floats.
#define KGTORCH_FLOAT16_COMPARISON(NAME, OP)                                                       \
  template <class T, std::enable_if_t<std::is_same_v<T, NAME>, int> = 0>                           \
  C10_HOST_DEVICE inline bool operator OP(const T& a, const T& b) {                                \
    return static_cast<float>(a) OP static_cast<float>(b);                                         \
  }

#define KGTORCH_FLOAT16_MIXED(NAME, OP, T, RESULT)                                                 \
  C10_HOST_DEVICE inline RESULT operator OP(NAME a, T b) {                                         \
    return static_cast<RESULT>(a) OP static_cast<RESULT>(b);                                       \
  }                                                                                                \
  C10_HOST_DEVICE inline RESULT operator OP(T a, NAME b) {                                         \
    return static_cast<RESULT>(a) OP static_cast<RESULT>(b);                                       \
  }

#define KGTORCH_FLOAT16_OPERATOR(NAME, OP)                                                         \
  C10_HOST_DEVICE inline NAME operator OP(const NAME& a, const NAME& b) {                          \
    return NAME(static_cast<float>(a) OP static_cast<float>(b));                                   \
  }                                                                                                \
  C10_HOST_DEVICE inline NAME& operator OP##=(NAME& a, const NAME& b) {                            \
    a = a OP b;                                                                                    \
    return a;                                                                                      \
  }                                                                                                \
  C10_HOST_DEVICE inline float& operator OP##=(float& a, const NAME& b) {                          \
    return a OP##= static_cast<float>(b);                                                         \
  }                                                                                                \
  KGTORCH_FLOAT16_MIXED(NAME, OP, float, float)                                                    \
  KGTORCH_FLOAT16_MIXED(NAME, OP, double, double)                                                  \
  KGTORCH_FLOAT16_MIXED(NAME, OP, int, NAME)                                                       \
  KGTORCH_FLOAT16_MIXED(NAME, OP, int64_t, NAME)

// As in torch, only one of the two converts to CUDA's type unasked.
KGTORCH_DEFINE_FLOAT16(Half, ::__half, half_from_float, half_to_float, )
KGTORCH_DEFINE_FLOAT16(BFloat16, ::__nv_bfloat16, bfloat16_from_float, bfloat16_to_float, explicit)

#undef KGTORCH_DEFINE_FLOAT16
#undef KGTORCH_FLOAT16_OPERATOR
#undef KGTORCH_FLOAT16_COMPARISON
#undef KGTORCH_FLOAT16_MIXED

}  // namespace c10

namespace std {

template <>
class numeric_limits<c10::Half> {
 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr int digits = 11;
  static constexpr c10::Half make(uint16_t bits) { return {bits, c10::Half::from_bits_t{}}; }
  static constexpr c10::Half min() { return make(0x0400); }
  static constexpr c10::Half max() { return make(0x7bff); }
  static constexpr c10::Half lowest() { return make(0xfbff); }
  static constexpr c10::Half epsilon() { return make(0x1400); }
  static constexpr c10::Half infinity() { return make(0x7c00); }
  static constexpr c10::Half quiet_NaN() { return make(0x7e00); }
};

template <>
class numeric_limits<c10::BFloat16> {
 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr int digits = 8;
  static constexpr c10::BFloat16 make(uint16_t bits) { return {bits, c10::BFloat16::from_bits_t{}}; }
  static constexpr c10::BFloat16 min() { return make(0x0080); }
  static constexpr c10::BFloat16 max() { return make(0x7f7f); }
  static constexpr c10::BFloat16 lowest() { return make(0xff7f); }
  static constexpr c10::BFloat16 epsilon() { return make(0x3c00); }
  static constexpr c10::BFloat16 infinity() { return make(0x7f80); }
  static constexpr c10::BFloat16 quiet_NaN() { return make(0x7fc0); }
};

}  // namespace std

namespace at {
// What to accumulate in on a GPU (at::acc_type<scalar_t, true>, at::opmath_type<scalar_t>).
template <class T>
struct OpMathType {
  using type = T;
};
template <>
struct OpMathType<c10::Half> {
  using type = float;
};
template <>
struct OpMathType<c10::BFloat16> {
  using type = float;
};
template <class T>
using opmath_type = typename OpMathType<T>::type;
template <class T, bool is_cuda>
using acc_type = std::conditional_t<
    std::is_same_v<opmath_type<T>, float> && !is_cuda, double,
    std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int64_t, opmath_type<T>>>;
}  // namespace at
