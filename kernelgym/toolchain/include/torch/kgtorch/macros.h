// Compiler and backend macros of the stand-in. KGEMU selects the CPU emulator: there a "CUDA" tensor
// lives in host memory.
#pragma once
#include <stddef.h>
#include <stdint.h>

#if defined(__CUDACC__) && !defined(KGEMU)
#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#else
#define C10_HOST_DEVICE
#define C10_DEVICE
#define C10_HOST
#endif
#define C10_UNUSED [[maybe_unused]]
#define C10_ALWAYS_INLINE inline __attribute__((always_inline))
#define C10_LIKELY(x) __builtin_expect(static_cast<bool>(x), 1)
#define C10_UNLIKELY(x) __builtin_expect(static_cast<bool>(x), 0)
#define C10_CONCATENATE_IMPL(a, b) a##b
#define C10_CONCATENATE(a, b) C10_CONCATENATE_IMPL(a, b)
#define C10_ANONYMOUS_VARIABLE(prefix) C10_CONCATENATE(prefix, __COUNTER__)
#define C10_STRINGIZE_IMPL(x) #x
#define C10_STRINGIZE(x) C10_STRINGIZE_IMPL(x)
#define C10_RESTRICT __restrict__
#define TORCH_API
#define C10_API
#define C10_EXPORT

// State must not be shared between extension modules of one process.
#define KGTORCH_LOCAL __attribute__((visibility("hidden")))

// What runs once, or on the way to an error: compiled small and quickly.
#define KGTORCH_COLD __attribute__((cold, noinline))

// Releases that candidates compare against; the stand-in follows the interface of this one.
#define TORCH_VERSION_MAJOR 2
#define TORCH_VERSION_MINOR 13
#define TORCH_VERSION_PATCH 0

namespace c10 {
namespace cuda {}
}  // namespace c10
namespace at {
using namespace c10;
namespace cuda {
using namespace c10::cuda;
}
}  // namespace at
namespace torch {
using namespace at;
}
