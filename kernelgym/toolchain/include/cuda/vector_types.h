// CUDA's vector types. Each is a union with a vector of the compiler's, so that a copy of one is a
// single access of its whole size, as on the device; a plain struct would be copied by its members.
#pragma once

#include "kgemu/core.h"  // uint3, dim3

// What is wider than one access is copied by its parts. A trivial copy would reach the checks as one
// range; only they need to see it otherwise.
#ifdef __SANITIZE_THREAD__
#define KGEMU_COPY_3(name)                                                        \
  constexpr name(const name& o) : x(o.x), y(o.y), z(o.z) {}                       \
  constexpr name& operator=(const name& o) {                                      \
    x = o.x;                                                                      \
    y = o.y;                                                                      \
    z = o.z;                                                                      \
    return *this;                                                                 \
  }
#define KGEMU_COPY_4(name)                                                        \
  name(const name& o) : kgemu_low(o.kgemu_low), kgemu_high(o.kgemu_high) {}       \
  name& operator=(const name& o) {                                                \
    kgemu_low = o.kgemu_low;                                                      \
    kgemu_high = o.kgemu_high;                                                    \
    return *this;                                                                 \
  }
#else
#define KGEMU_COPY_3(name)
#define KGEMU_COPY_4(name)
#endif

#define KGEMU_VECTOR_1(T, name, base)                                             \
  struct name {                                                                   \
    T x;                                                                          \
    name() = default;                                                             \
    constexpr name(T x) : x(x) {}                                                 \
  };                                                                              \
  static inline constexpr name make_##name(T x) { return name(x); }

#define KGEMU_VECTOR_2(T, name, base)                                             \
  union alignas(2 * sizeof(T)) name {                                             \
    struct {                                                                      \
      T x, y;                                                                     \
    };                                                                            \
    T kgemu_whole __attribute__((vector_size(2 * sizeof(T))));                    \
    name() = default;                                                             \
    constexpr name(T x, T y = 0) : x(x), y(y) {}                                  \
  };                                                                              \
  static inline constexpr name make_##name(T x, T y) { return name(x, y); }

// Three-component types are copied by their members on the device too.
#define KGEMU_VECTOR_3(T, name, base)                                             \
  struct name {                                                                   \
    T x, y, z;                                                                    \
    name() = default;                                                             \
    constexpr name(T x, T y = 0, T z = 0) : x(x), y(y), z(z) {}                   \
    KGEMU_COPY_3(name)                                                            \
  };                                                                              \
  static inline constexpr name make_##name(T x, T y, T z) { return name(x, y, z); }

#define KGEMU_VECTOR_4(T, name, base)                                             \
  union alignas(4 * sizeof(T)) name {                                             \
    struct {                                                                      \
      T x, y, z, w;                                                               \
    };                                                                            \
    T kgemu_whole __attribute__((vector_size(4 * sizeof(T))));                    \
    name() = default;                                                             \
    constexpr name(T x, T y = 0, T z = 0, T w = 0) : x(x), y(y), z(z), w(w) {}    \
  };                                                                              \
  static inline constexpr name make_##name(T x, T y, T z, T w) { return name(x, y, z, w); }

// 32 bytes: two accesses of 16, the widest there are.
#define KGEMU_VECTOR_4_WIDE(T, name, base)                                        \
  struct alignas(16) name {                                                       \
    union {                                                                       \
      struct {                                                                    \
        T x, y;                                                                   \
      };                                                                          \
      T kgemu_low __attribute__((vector_size(16)));                               \
    };                                                                            \
    union {                                                                       \
      struct {                                                                    \
        T z, w;                                                                   \
      };                                                                          \
      T kgemu_high __attribute__((vector_size(16)));                              \
    };                                                                            \
    name() = default;                                                             \
    constexpr name(T x, T y = 0, T z = 0, T w = 0) : x(x), y(y), z(z), w(w) {}    \
    KGEMU_COPY_4(name)                                                            \
  };                                                                              \
  static inline constexpr name make_##name(T x, T y, T z, T w) { return name(x, y, z, w); }

#define KGEMU_VECTORS(T, base)              \
  KGEMU_VECTOR_1(T, base##1, base)          \
  KGEMU_VECTOR_2(T, base##2, base)          \
  KGEMU_VECTOR_3(T, base##3, base)          \
  KGEMU_VECTOR_4(T, base##4, base)

#define KGEMU_VECTORS_WIDE(T, base)         \
  KGEMU_VECTOR_1(T, base##1, base)          \
  KGEMU_VECTOR_2(T, base##2, base)          \
  KGEMU_VECTOR_3(T, base##3, base)          \
  KGEMU_VECTOR_4_WIDE(T, base##4, base)

KGEMU_VECTORS(signed char, char)
KGEMU_VECTORS(unsigned char, uchar)
KGEMU_VECTORS(short, short)
KGEMU_VECTORS(unsigned short, ushort)
KGEMU_VECTORS(int, int)
KGEMU_VECTOR_1(unsigned int, uint1, uint)
KGEMU_VECTOR_2(unsigned int, uint2, uint)
static inline constexpr uint3 make_uint3(unsigned int x, unsigned int y, unsigned int z) {
  return uint3{x, y, z};
}
KGEMU_VECTOR_4(unsigned int, uint4, uint)
KGEMU_VECTORS(float, float)
KGEMU_VECTORS_WIDE(long, long)
KGEMU_VECTORS_WIDE(unsigned long, ulong)
KGEMU_VECTORS_WIDE(long long, longlong)
KGEMU_VECTORS_WIDE(unsigned long long, ulonglong)
KGEMU_VECTORS_WIDE(double, double)

#undef KGEMU_COPY_3
#undef KGEMU_COPY_4
#undef KGEMU_VECTORS
#undef KGEMU_VECTORS_WIDE
#undef KGEMU_VECTOR_1
#undef KGEMU_VECTOR_2
#undef KGEMU_VECTOR_3
#undef KGEMU_VECTOR_4
#undef KGEMU_VECTOR_4_WIDE
