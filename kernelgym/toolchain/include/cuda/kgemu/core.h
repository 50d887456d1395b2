// Core of the CUDA emulation: thread identity, launches, barriers, warp exchange, atomics, traps.
//
// Everything else under include/cuda is built on this file and kgemu_api.h. What is declared
// extern "C" is defined in libkgemu.so; extension modules link nothing else of the emulator's.
//
// A module is compiled twice. The *fast* variant is plain C++. The *checked* variant adds
//     -O1 -finline-small-functions -fsanitize=thread --param tsan-instrument-func-entry-exit=0 -g1
// without linking libtsan: libkgemu.so defines the __tsan_* callbacks, and so sees every access.
// Both need -fno-gnu-unique: static shared variables of templates must not be shared between the two
// variants when one process loads both. The linker must keep .symtab (no -s), from which the runtime
// reads each kernel's static shared memory.
// A warp's requests are grouped by return address of those callbacks, so thin wrappers around
// memory accesses (atomics, __ldg, vector loads) should be KGEMU_INLINE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "../kgemu_api.h"

#ifdef __SANITIZE_THREAD__
#define KGEMU_CHECKED 1
#else
#define KGEMU_CHECKED 0
#endif

#define KGEMU_INLINE inline __attribute__((always_inline))

// Qualifiers. A __shared__ variable is thread-local only to lie in the module's TLS segment, an
// address range that tells it from __device__ variables; one OS thread runs every block. Types in
// shared memory must be trivially default constructible.
#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __shared__ static __thread __attribute__((aligned(16)))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

// The two vector types that thread identity needs; the others are in the vector types header.
struct uint3 {
  unsigned int x, y, z;
};

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int x_ = 1, unsigned int y_ = 1, unsigned int z_ = 1)
      : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
};

extern "C" {
extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;

// -- Launching -----------------------------------------------------------------------------------

typedef struct kgemu_launch_config {
  dim3 grid;
  dim3 block;
  size_t dynamic_shared;   // bytes
  const void* stream;      // launches are synchronous; kept for completeness
  const char* kernel;      // as written: "softmax<float, 256>"
  const char* file;        // "" when unknown
  int line;                // line of the launch
  int checked;             // the caller was compiled with callbacks
  int cooperative;         // cudaLaunchCooperativeKernel
  const void* tls_anchor;  // a thread-local variable of the calling module
} kgemu_launch_config;

// Runs the grid to its end, or refuses it as the driver would (see kgemu_get_error). `run_threads`
// runs threads as long as kgemu_next_thread answers 1; `arguments` (of `size` bytes) is its operand.
void kgemu_launch(const kgemu_launch_config* config, void (*run_threads)(const void* arguments),
                  const void* arguments, size_t size);
int kgemu_next_thread(void);

// Dynamic shared memory of the running block, aligned to 1024 bytes.
void* kgemu_dynamic_shared(void);
size_t kgemu_dynamic_shared_size(void);

// cudaFuncAttributeMaxDynamicSharedMemorySize of a kernel. Returns a cudaError_t.
int kgemu_set_max_dynamic_shared(const void* function, int bytes);
// Bytes of static __shared__ memory declared in a kernel (0 when unknown).
size_t kgemu_static_shared(const void* function);

// -- Errors and findings ---------------------------------------------------------------------------

// Error state as cudaError_t numbers (0, 1 invalid value, 2 memory allocation, 9 invalid
// configuration, 98 invalid device function, 700 illegal address, 710 assert, 714 stack error,
// 715 illegal instruction, 716 misaligned address, 719 launch failure). Numbers of 700 and above
// are sticky: they stay until kgemu_reset and no kernel runs any more.
int kgemu_get_error(int clear);
void kgemu_set_error(int error);

// Adds a finding: a stable code ("memory.out_of_bounds") and one line of text. Inside a kernel it is
// given kernel, block, thread and the caller's place.
void kgemu_finding(const char* code, const char* text);

// Ends the kernel at once with that error; for use inside kernels.
[[noreturn]] void kgemu_abandon(int error);
// __trap(): finding `trap`.
[[noreturn]] void kgemu_trap(void);
// Something that the emulator cannot do: finding `unsupported`; in a kernel, ends it.
void kgemu_unsupported(const char* what);
// Kernel assert(): finding `assert`.
[[noreturn]] void kgemu_assert_fail(const char* expression, const char* file, unsigned line,
                                    const char* function);
// Kernel printf, collected in the report.
int kgemu_printf(const char* format, ...) __attribute__((format(printf, 1, 2)));
// A counter that only grows.
long long kgemu_clock(void);
// Whether the caller runs inside a kernel.
int kgemu_in_kernel(void);

// -- Memory ----------------------------------------------------------------------------------------

// memcpy, memmove and memset in kernels: checked and counted like accesses of the widest aligned
// width. Outside kernels the plain functions.
void* kgemu_memcpy(void* target, const void* source, size_t bytes);
void* kgemu_memset(void* target, int value, size_t bytes);

// Host side (cudaMemcpy, cudaMemset): a device range is checked against its allocation, what is
// never written stays so, and the target becomes written. `*_is_device`: whether that side must be
// device memory. Returns a cudaError_t.
int kgemu_host_copy(void* target, int target_is_device, const void* source, int source_is_device,
                    size_t bytes);
int kgemu_host_set(void* target, int value, size_t bytes);

// __threadfence(): what was written before is released by the thread's next atomic.
void kgemu_fence(void);

// Brackets an atomic operation: checks and counts it as one, and leaves the plain accesses between
// unseen. Use kgemu::atomic_update.
void kgemu_atomic_begin(const volatile void* address, unsigned bytes);
void kgemu_atomic_end(void);

// -- Barriers and warps ------------------------------------------------------------------------------

enum { KGEMU_BARRIER_PLAIN = 0, KGEMU_BARRIER_COUNT, KGEMU_BARRIER_AND, KGEMU_BARRIER_OR };

// Waits for every thread of the block that has not exited; returns the reduction of `predicate`.
int kgemu_barrier(int kind, int predicate, int line);

// What the lanes of a warp deposited in one exchange. `present` has a bit for each lane that took
// part: lanes of the mask that have exited (or never were) are absent, their slots zero.
typedef struct kgemu_lanes {
  uint64_t slot[32];
  uint32_t present;
} kgemu_lanes;

// Waits for every lane of `mask` that has not exited. The answer is valid until the caller's next
// exchange. The one primitive behind shuffles, votes, matches and reductions.
const kgemu_lanes* kgemu_warp_exchange(uint32_t mask, uint64_t value, int line);
void kgemu_warp_sync(uint32_t mask, int line);
// Lanes of the caller's warp that are at this line together with the caller.
uint32_t kgemu_active_mask(int line);
// The caller's lane, 0 to 31.
int kgemu_lane(void);
}  // extern "C"

constexpr int warpSize = 32;

inline void __syncthreads(int line = __builtin_LINE()) {
  kgemu_barrier(KGEMU_BARRIER_PLAIN, 0, line);
}
inline int __syncthreads_count(int predicate, int line = __builtin_LINE()) {
  return kgemu_barrier(KGEMU_BARRIER_COUNT, predicate != 0, line);
}
inline int __syncthreads_and(int predicate, int line = __builtin_LINE()) {
  return kgemu_barrier(KGEMU_BARRIER_AND, predicate != 0, line);
}
inline int __syncthreads_or(int predicate, int line = __builtin_LINE()) {
  return kgemu_barrier(KGEMU_BARRIER_OR, predicate != 0, line);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) {
  kgemu_warp_sync(mask, line);
}
inline unsigned __activemask(int line = __builtin_LINE()) { return kgemu_active_mask(line); }
inline void __threadfence() { kgemu_fence(); }
inline void __threadfence_block() { kgemu_fence(); }
inline void __threadfence_system() { kgemu_fence(); }

namespace kgemu {

// Replaces *address by change(*address) as one atomic operation; returns the old value.
template <class T, class Change>
KGEMU_INLINE T atomic_update(T* address, Change change) {
#if KGEMU_CHECKED
  kgemu_atomic_begin(address, sizeof(T));
#endif
  T old = *address;
  *address = change(old);
#if KGEMU_CHECKED
  kgemu_atomic_end();
#endif
  return old;
}

// Lane exchange of any type of at most 8 bytes: what `lane` deposited, and the caller's own value
// when that lane takes no part.
template <class T>
inline uint64_t to_slot(const T& value) {
  static_assert(sizeof(T) <= 8, "a warp exchange carries at most 8 bytes");
  uint64_t slot = 0;
  __builtin_memcpy(&slot, &value, sizeof(T));
  return slot;
}
template <class T>
inline T from_slot(uint64_t slot) {
  T value;
  __builtin_memcpy(&value, &slot, sizeof(T));
  return value;
}

// A kernel with its arguments, evaluated once and copied for each thread.
template <class Body, class... Arguments>
struct Bound {
  Body body;
  std::tuple<Arguments...> arguments;

  static void run_threads(const void* self) {
    const Bound& bound = *static_cast<const Bound*>(self);
    while (kgemu_next_thread()) bound.run(std::index_sequence_for<Arguments...>{});
  }
  template <size_t... I>
  KGEMU_INLINE void run(std::index_sequence<I...>) const {
    body(std::get<I>(arguments)...);
  }
};

// `kernel<T><<<grid, block, shared, stream>>>(a, b)` is written as
//     ::kgemu::Launch("kernel<T>", "file.cu", 12, grid, block, shared, stream)(
//         [=](auto... a) { kernel<T>(a...); }, a, b);
// The lambda captures by value ([=]): what it names lives on the host's stack.
class Launch {
 public:
  Launch(const char* kernel, const char* file, int line, dim3 grid, dim3 block,
         size_t dynamic_shared = 0, const void* stream = nullptr) {
    config_ = {grid, block, dynamic_shared, stream, kernel, file, line, KGEMU_CHECKED, 0, nullptr};
  }

  Launch& cooperative() {
    config_.cooperative = 1;
    return *this;
  }

  template <class Body, class... Arguments>
  void operator()(Body body, Arguments&&... arguments) {
    static __thread char anchor;
    anchor = 1;
    config_.tls_anchor = &anchor;
    using Call = Bound<Body, std::decay_t<Arguments>...>;
    const Call call{body, std::tuple<std::decay_t<Arguments>...>(
                              std::forward<Arguments>(arguments)...)};
    kgemu_launch(&config_, &Call::run_threads, &call, sizeof(Call));
  }

 private:
  kgemu_launch_config config_;
};

}  // namespace kgemu
