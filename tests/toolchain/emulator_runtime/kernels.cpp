// Kernels for the tests of the runtime, written as the rewriter would leave them. Every exported
// function allocates, launches, frees, and returns what the test compares.
#include <cstring>
#include <vector>

#include "kgemu/core.h"

#define EXPORT extern "C" __attribute__((visibility("default")))
#define LAUNCH(kernel, ...) \
  ::kgemu::Launch(#kernel, __FILE__, __LINE__, __VA_ARGS__)([=](auto... a) { kernel(a...); }

template <class T>
struct Device {
  T* data;
  size_t count;
  Device(size_t n, bool initialised, const char* label) : count(n) {
    data = static_cast<T*>(kgemu_alloc(n * sizeof(T), initialised, label));
    if (initialised) std::memset(static_cast<void*>(data), 0, n * sizeof(T));
  }
  ~Device() { kgemu_free(data); }
};

// ---- Identity, barriers, exchanges ----

__global__ void identity(int* out) {
  int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  int threads = blockDim.x * blockDim.y * blockDim.z;
  out[block * threads + thread] = block * threads + thread;
}
EXPORT int run_identity() {
  Device<int> out(12 * 24, false, "out");
  LAUNCH(identity, dim3(2, 3, 2), dim3(4, 2, 3)), out.data);
  for (int i = 0; i < 12 * 24; ++i) {
    if (out.data[i] != i) return i;
  }
  return -1;
}

template <bool kFirst, bool kInner>
__global__ void tree_sum(const int* in, int* out) {
  __shared__ int partial[256];
  int t = threadIdx.x;
  partial[t] = in[blockIdx.x * 256 + t];
  if (kFirst) __syncthreads();
  for (int step = 128; step > 0; step /= 2) {
    if (t < step) partial[t] += partial[t + step];
    if (kInner) __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = partial[0];
}
template <bool kFirst, bool kInner>
int sum_with_tree() {
  Device<int> in(1024, true, "in"), out(4, false, "out");
  for (int i = 0; i < 1024; ++i) in.data[i] = i;
  ::kgemu::Launch("tree_sum", __FILE__, __LINE__, 4, 256)(
      [=](auto... a) { tree_sum<kFirst, kInner>(a...); }, in.data, out.data);
  return out.data[0] + out.data[1] + out.data[2] + out.data[3];
}
EXPORT int run_tree_sum() { return sum_with_tree<true, true>(); }
EXPORT int run_tree_sum_no_first_barrier() { return sum_with_tree<false, true>(); }
EXPORT int run_tree_sum_no_inner_barrier() { return sum_with_tree<true, false>(); }

template <bool kSync>
__global__ void warp_tail_sum(const int* in, int* out) {
  __shared__ int partial[256];
  int t = threadIdx.x;
  partial[t] = in[t];
  __syncthreads();
  for (int step = 128; step >= 32; step /= 2) {
    if (t < step) partial[t] += partial[t + step];
    __syncthreads();
  }
  if (t < 32) {
    int value = partial[t];
    for (int step = 16; step > 0; step /= 2) {
      value += partial[(t + step) & 31];
      if (kSync) __syncwarp();
      partial[t] = value;
      if (kSync) __syncwarp();
    }
  }
  if (t == 0) out[0] = partial[0];
}
template <bool kSync>
int sum_with_warp_tail() {
  Device<int> in(256, true, "in"), out(1, false, "out");
  for (int i = 0; i < 256; ++i) in.data[i] = i;
  ::kgemu::Launch("warp_tail_sum", __FILE__, __LINE__, 1, 256)(
      [=](auto... a) { warp_tail_sum<kSync>(a...); }, in.data, out.data);
  return out.data[0];
}
EXPORT int run_warp_tail_sum() { return sum_with_warp_tail<true>(); }
EXPORT int run_warp_tail_sum_unsynchronised() { return sum_with_warp_tail<false>(); }

__device__ int shuffle_down(int value, int delta, int line = __builtin_LINE()) {
  const kgemu_lanes* lanes = kgemu_warp_exchange(~0u, kgemu::to_slot(value), line);
  int source = kgemu_lane() + delta;
  bool valid = source < 32 && (lanes->present >> source & 1);
  return valid ? kgemu::from_slot<int>(lanes->slot[source]) : value;
}
__global__ void shuffle_sum(const int* in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int value = in[i];
  for (int delta = 16; delta > 0; delta /= 2) value += shuffle_down(value, delta);
  if (threadIdx.x % 32 == 0) out[i / 32] = value;
}
EXPORT int run_shuffle_sum() {
  Device<int> in(2048, true, "in"), out(64, false, "out");
  for (int i = 0; i < 2048; ++i) in.data[i] = i;
  LAUNCH(shuffle_sum, 8, 256), in.data, out.data, 2048);
  int sum = 0;
  for (int i = 0; i < 64; ++i) sum += out.data[i];
  return sum;
}
// Half of the last warp returns before the shuffles.
EXPORT int run_shuffle_with_exited_lanes() {
  Device<int> in(48, true, "in"), out(2, false, "out");
  for (int i = 0; i < 48; ++i) in.data[i] = 1;
  LAUNCH(shuffle_sum, 1, 64), in.data, out.data, 48);
  return out.data[0];
}

__global__ void early_return(int* out) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  if (threadIdx.x >= 100) return;
  __syncthreads();
  kgemu::atomic_update(&count, [](int old) { return old + 1; });
  __syncthreads();
  if (threadIdx.x == 0) *out = count;
}
EXPORT int run_early_return() {
  Device<int> out(1, false, "out");
  LAUNCH(early_return, 1, 128), out.data);
  return out.data[0];
}

__global__ void reductions(int* out) {
  int t = threadIdx.x;
  int count = __syncthreads_count(t % 3 == 0);
  int all = __syncthreads_and(t < 96), most = __syncthreads_and(t < 95);
  int any = __syncthreads_or(t == 95), none = __syncthreads_or(t == 96);
  if (t == 7) *out = count * 10000 + all * 1000 + most * 100 + any * 10 + none;
}
EXPORT int run_reductions() {
  Device<int> out(1, false, "out");
  LAUNCH(reductions, 1, 96), out.data);
  return out.data[0];
}

__global__ void converged(unsigned* out) {
  int t = threadIdx.x;
  if (t % 4 == 0) {
    out[t] = __activemask();
  } else {
    out[t] = __activemask();
  }
}
EXPORT unsigned run_converged(int thread) {
  Device<unsigned> out(32, false, "out");
  LAUNCH(converged, 1, 32), out.data);
  return out.data[thread];
}

__global__ void half_warp_waits(int* out) {
  if (threadIdx.x < 16) {
    __syncwarp();
  } else {
    __syncthreads();
  }
  out[threadIdx.x] = 1;
}
EXPORT void run_deadlock() {
  Device<int> out(32, false, "out");
  LAUNCH(half_warp_waits, 1, 32), out.data);
}

__global__ void divergent_barriers(int* out) {
  if (threadIdx.x < 16) {
    __syncthreads();
  } else {
    out[threadIdx.x] = 1;
    __syncthreads();
  }
}
EXPORT void run_divergent_barriers() {
  Device<int> out(32, false, "out");
  LAUNCH(divergent_barriers, 1, 32), out.data);
}

__global__ void spin(int* flag, int* out) {
  if (threadIdx.x < 32) {
    int seen;
    do {
      seen = __atomic_load_n(flag, __ATOMIC_RELAXED);
    } while (!seen);
    out[threadIdx.x] = seen;
  } else {
    __atomic_store_n(flag, 5, __ATOMIC_RELAXED);
  }
}
EXPORT int run_spin() {
  Device<int> flag(1, true, "flag"), out(32, false, "out");
  LAUNCH(spin, 1, 64), flag.data, out.data);
  return out.data[31];
}

// ---- Order ----

__global__ void note_order(int* next, int* order) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  order[kgemu::atomic_update(next, [](int old) { return old + 1; })] = i;
}
EXPORT void run_note_order(int* order) {  // 4 blocks of 64 threads
  Device<int> next(1, true, "next"), out(256, false, "order");
  LAUNCH(note_order, 4, 64), next.data, out.data);
  std::memcpy(order, out.data, 256 * sizeof(int));
}

// ---- Memory ----

__global__ void copy(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}
EXPORT void run_copy(int in_size, int out_size, int n, int initialised) {
  Device<float> in(in_size, initialised, "in"), out(out_size, false, "out");
  LAUNCH(copy, (n + 63) / 64, 64), in.data, out.data, n);
}
EXPORT void run_far_write() {
  Device<float> in(64, true, "in");
  LAUNCH(copy, 1, 64), in.data, reinterpret_cast<float*>(64), 64);
}
EXPORT int run_registered(int register_it) {
  std::vector<float> in(64, 1.0f), out(64);
  if (register_it) {
    kgemu_register(in.data(), 256, 1, "in");
    kgemu_register(out.data(), 256, 0, "out");
  }
  LAUNCH(copy, 1, 64), in.data(), out.data(), 64);
  kgemu_unregister(in.data());
  kgemu_unregister(out.data());
  return out[63] == 1.0f;
}
// Registered once more from inside, as a view of an allocation would be.
EXPORT int run_view() {
  float* base = static_cast<float*>(kgemu_alloc(512, 0, "base"));
  Device<float> out(64, false, "out");
  kgemu_register(base + 64, 256, 1, "view");
  LAUNCH(copy, 1, 64), base + 64, out.data, 64);
  kgemu_free(base);  // the view keeps it
  int known = kgemu_is_device_pointer(base);
  kgemu_unregister(base + 64);
  return known * 2 + kgemu_is_device_pointer(base);
}

// A view is registered before the tensor that it is a part of.
EXPORT void run_view_first(int n) {
  std::vector<float> base(64);
  Device<float> out(64, false, "out");
  kgemu_register(base.data() + 8, 32, 1, "view");
  kgemu_register(base.data(), 256, 1, "base");
  LAUNCH(copy, 1, 64), base.data(), out.data, 64);
  LAUNCH(copy, 1, 64), base.data() + n, out.data, 64 - n);
  kgemu_unregister(base.data());
  kgemu_unregister(base.data() + 8);
}

__global__ void shared_overflow(int* out, int at) {
  char* dynamic = static_cast<char*>(kgemu_dynamic_shared());
  dynamic[at] = 1;
  out[0] = dynamic[at];
}
EXPORT void run_shared_overflow(int at) {
  Device<int> out(1, false, "out");
  LAUNCH(shared_overflow, 1, 1, 100), out.data, at);
}

__global__ void unwritten_shared(float* out) {
  __shared__ float tile[64];
  if (threadIdx.x != 5) tile[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];
}
EXPORT void run_unwritten_shared() {
  Device<float> out(64, false, "out");
  LAUNCH(unwritten_shared, 1, 64), out.data);
}

typedef float Vector4 __attribute__((vector_size(16)));
__global__ void vector_copy(const Vector4* in, Vector4* out) { out[threadIdx.x] = in[threadIdx.x]; }
EXPORT void run_vector_copy(int offset) {
  Device<float> in(260, true, "in"), out(256, false, "out");
  LAUNCH(vector_copy, 1, 64), reinterpret_cast<const Vector4*>(in.data + offset),
      reinterpret_cast<Vector4*>(out.data));
}

__global__ void block_copy(char* out, const char* in) {
  kgemu_memcpy(out, in, 100);
  kgemu_memset(out + 100, 7, 28);
}
EXPORT int run_block_copy(int shorten) {
  Device<char> in(100 - shorten, true, "in"), out(128, false, "out");
  LAUNCH(block_copy, 1, 1), out.data, in.data);
  return out.data[127];
}

__device__ int module_variable[4] = {1, 2, 3, 4};
__global__ void use_module_variable(int* out) { out[threadIdx.x] = module_variable[threadIdx.x] * 2; }
EXPORT int run_module_variable() {
  Device<int> out(4, false, "out");
  int nine = 9;
  if (kgemu_host_copy(&module_variable[3], 1, &nine, 0, sizeof(int))) return -1;
  LAUNCH(use_module_variable, 1, 4), out.data);
  return out.data[3];
}

EXPORT int run_host_copies() {
  Device<int> a(4, false, "a"), b(4, false, "b"), out(4, false, "out");
  int host[5] = {};
  int ok = kgemu_host_copy(b.data, 1, a.data, 1, 16);      // copies memory never written: allowed
  int too_long = kgemu_host_copy(host, 0, a.data, 1, 20);
  LAUNCH(copy, 1, 4), reinterpret_cast<float*>(b.data), reinterpret_cast<float*>(out.data), 4);
  return ok * 10 + too_long;
}

// ---- Faults ----

__global__ void recurse(int* out, int depth) {
  volatile char room[512];
  room[depth & 511] = static_cast<char>(depth);
  if (depth) recurse(out, depth - 1);
  *out += room[depth & 511];
}
EXPORT void run_recursion(int depth) {
  Device<int> out(1, true, "out");
  LAUNCH(recurse, 1, 1), out.data, depth);
}

__global__ void large_local(int* out, int at) {
  volatile char room[400 * 1024];  // more than a thread's stack and its guard
  room[at] = 1;
  out[0] = room[at];
}
EXPORT void run_large_local() {
  Device<int> out(1, true, "out");
  LAUNCH(large_local, 1, 1), out.data, 5);
}

__global__ void divide(int* out, int by) { *out = 7 / by; }
EXPORT void run_division() {
  Device<int> out(1, false, "out");
  LAUNCH(divide, 1, 1), out.data, 0);
}

__global__ void failing_assert(int limit) {
  if (static_cast<int>(threadIdx.x) >= limit) {
    kgemu_assert_fail("threadIdx.x < limit", "k.cu", 7, "failing_assert");
  }
}
EXPORT void run_assert() { LAUNCH(failing_assert, 1, 8), 5); }
__global__ void trapping() { kgemu_trap(); }
EXPORT void run_trap() { LAUNCH(trapping, 1, 8)); }
__global__ void printing() {
  long long start = kgemu_clock();
  kgemu_printf("%d \"%s\" %d\n", threadIdx.x, "\xff", kgemu_clock() > start);
}
EXPORT void run_printing() { LAUNCH(printing, 1, 2)); }
__global__ void parent() { LAUNCH(printing, 1, 2)); }
EXPORT void run_nested() { LAUNCH(parent, 1, 1)); }

// ---- Limits ----

__global__ void nothing() {}
EXPORT int run_nothing(int gx, int gy, int bx, int by, int bz, int dynamic) {
  LAUNCH(nothing, dim3(gx, gy), dim3(bx, by, bz), dynamic));
  return kgemu_get_error(1);
}
EXPORT int run_nothing_after_trap() {
  run_trap();
  return run_nothing(1, 1, 1, 1, 1, 0);
}
template <int kBytes>
__global__ void uses_static(char* out) {
  __shared__ char room[kBytes];
  room[threadIdx.x] = 1;
  out[threadIdx.x] = room[threadIdx.x];
}
EXPORT int run_static_shared(int dynamic, int raise_to) {
  Device<char> out(32, false, "out");
  int raised = 0;
  if (raise_to) {
    raised = kgemu_set_max_dynamic_shared(reinterpret_cast<const void*>(&uses_static<40000>), raise_to);
  }
  ::kgemu::Launch("uses_static<40000>", __FILE__, __LINE__, 1, 32, dynamic)(
      [=](auto... a) { uses_static<40000>(a...); }, out.data);
  return raised * 100 + kgemu_get_error(1);
}

// A million threads; also many accesses by each of a few.
EXPORT double run_million(double* checksum) {
  const int n = 1 << 20;
  Device<float> in(n, true, "in"), out(n, false, "out");
  in.data[n - 1] = 3;
  LAUNCH(copy, n / 256, 256), in.data, out.data, n);
  *checksum = out.data[n - 1];
  return 0;
}
__global__ void long_loop(const float* in, float* out, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += in[i * 32 + threadIdx.x];
  out[threadIdx.x] = sum;
}
EXPORT float run_long_loop(int n) {
  Device<float> in(n * 32, true, "in"), out(32, false, "out");
  for (int i = 0; i < n * 32; ++i) in.data[i] = 1;
  LAUNCH(long_loop, 1, 32), in.data, out.data, n);
  return out.data[31];
}
