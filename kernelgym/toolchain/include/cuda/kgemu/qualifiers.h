// What the compiler of a device predefines, and the qualifiers that core.h leaves out.
#pragma once

#include "core.h"

// The emulated device is one of compute capability 9.0 under CUDA 12.8. Host and device code are
// one here, and take the device's branches.
#ifndef KGEMU_HOST_ONLY
#ifndef __CUDACC__
#define __CUDACC__ 1
#endif
#define __NVCC__ 1
#define __CUDA_ARCH__ 900
#define __CUDA_ARCH_LIST__ 900
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 8
#define __CUDACC_RELAXED_CONSTEXPR__ 1
#define __CUDACC_EXTENDED_LAMBDA__ 1
#endif
#define KGEMU 1

#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __device_builtin__
#define __maxnreg__(n)
#define CUDARTAPI
#define CUDART_CB
#define CUDART_VERSION 12080
#define CUDA_VERSION 12080
// __noinline__ is left to the rewriter: libstdc++ spells attributes with that word.

// The name of the function at that address, "" when unknown.
extern "C" const char* kgemu_function_name(const void* function);

namespace kgemu {

// A launch as the rewriter writes it:
//     prepare("kernel", __FILE__, __LINE__, [=](auto... a) { kernel(a...); }).on(grid, block)(args)
template <class Body>
struct Prepared {
  const char* kernel;
  const char* file;
  int line;
  Body body;

  struct Placed {
    Launch launch;
    Body body;
    template <class... Arguments>
    void operator()(Arguments&&... arguments) {
      launch(body, static_cast<Arguments&&>(arguments)...);
    }
  };

  Placed on(dim3 grid, dim3 block, size_t dynamic_shared = 0, const void* stream = nullptr) const {
    return {Launch(kernel, file, line, grid, block, dynamic_shared, stream), body};
  }
};

template <class Body>
inline Prepared<Body> prepare(const char* kernel, const char* file, int line, Body body) {
  return {kernel, file, line, body};
}

// The name of what a launch calls, where it may be a variable that points to a kernel: `probe` calls
// its argument with it. A template whose arguments the call deduces has no address: its spelling.
struct TakeAddress {
  template <class... P>
  const void* operator()(void (*function)(P...)) const {
    return reinterpret_cast<const void*>(function);
  }
};
template <class Probe, class = decltype(std::declval<Probe>()(TakeAddress()))>
inline const char* name_of(const char* spelling, Probe probe, int) {
  const char* name = kgemu_function_name(probe(TakeAddress()));
  return *name != 0 ? name : spelling;
}
template <class Probe>
inline const char* name_of(const char* spelling, Probe, long) {
  return spelling;
}

inline void* dynamic_shared() { return kgemu_dynamic_shared(); }

// `extern __shared__ T name[]` outside of functions, where no block's address is known yet.
template <class T>
struct DynamicShared {
  operator T*() const { return static_cast<T*>(kgemu_dynamic_shared()); }
  T* operator&() const { return *this; }
  T* operator+() const { return *this; }
  template <class U>
  explicit operator U*() const {
    return static_cast<U*>(kgemu_dynamic_shared());
  }
};

// Storage of a __shared__ variable whose type has constructors, which g++ would run.
template <class T>
struct StaticShared {
  alignas(alignof(T) > 16 ? alignof(T) : 16) unsigned char bytes[sizeof(T)];
  T& get() { return reinterpret_cast<T&>(bytes); }
};

}  // namespace kgemu

#define KGEMU_NAME_(...) #__VA_ARGS__
#define KGEMU_NAME(...) KGEMU_NAME_(__VA_ARGS__)

// memcpy and its like, under the names that the rewriter gives them.
KGEMU_INLINE void* kgemu_device_memcpy(void* target, const void* source, size_t bytes) {
#if KGEMU_CHECKED
  return kgemu_memcpy(target, source, bytes);
#else
  return __builtin_memcpy(target, source, bytes);
#endif
}
KGEMU_INLINE void* kgemu_device_memmove(void* target, const void* source, size_t bytes) {
#if KGEMU_CHECKED
  return kgemu_memcpy(target, source, bytes);
#else
  return __builtin_memmove(target, source, bytes);
#endif
}
KGEMU_INLINE void* kgemu_device_memset(void* target, int value, size_t bytes) {
#if KGEMU_CHECKED
  return kgemu_memset(target, value, bytes);
#else
  return __builtin_memset(target, value, bytes);
#endif
}
template <class... Arguments>
inline int kgemu_device_printf(const char* format, Arguments... arguments) {
  return kgemu_in_kernel() ? kgemu_printf(format, arguments...)
                           : __builtin_printf(format, arguments...);
}
namespace std {
using ::kgemu_device_memcpy;
using ::kgemu_device_memmove;
using ::kgemu_device_memset;
using ::kgemu_device_printf;
}  // namespace std
