// The __tsan_* callbacks of checked modules: every load, store and atomic of a kernel comes by here.
//
// GCC calls __tsan_readN or __tsan_writeN (N = 1 .. 16) before an access that is aligned to N by its
// type, __tsan_unaligned_* before one that may not be, and the range forms for larger copies.
#include <cstring>

#include "shadow.h"

namespace kgemu {

Hot hot;

namespace {

[[noreturn, gnu::noinline]] void out_of_bounds(uintptr_t address, unsigned size, Kind kind,
                                               uintptr_t place) {
  const char* verb = kind == Kind::kRead ? "read" : kind == Kind::kWrite ? "write" : "atomic";
  add_finding("memory.out_of_bounds",
              std::string(verb) + " of " + std::to_string(size) +
                  (size == 1 ? " byte at " : " bytes at ") + describe_address(address),
              place);
  abandon(kIllegalAddress);
}

[[noreturn, gnu::noinline]] void misaligned(uintptr_t address, unsigned size, uintptr_t place) {
  char text[96];
  snprintf(text, sizeof(text), "access of %u bytes at an address that is %u past a multiple of %u",
           size, static_cast<unsigned>(address & (size - 1)), size);
  add_finding("memory.misaligned", text, place);
  abandon(kMisalignedAddress);
}

// Remembers what the access goes to. A static shared variable must hold all of it: what lies between
// variables is out of bounds.
[[gnu::noinline]] void locate(Site* site, uintptr_t address, unsigned size, Kind kind,
                              uintptr_t place) {
  Region* region = find_region(address, size);
  if (!region) out_of_bounds(address, size, kind, place);
  site->region = region;
  site->low = region->low;
  site->bytes = region->bytes;
  if (!region->module || region->module->shared.empty()) return;
  site->bytes = 0;
  for (const SharedVariable& variable : region->module->shared) {
    if (address - region->low - variable.offset >= variable.bytes) continue;
    site->low = region->low + variable.offset;
    site->bytes = variable.bytes;
  }
  if (!site->holds(address, size)) out_of_bounds(address, size, kind, place);
}

// Outside kernels only the host runs; on a GPU it would die of touching a tensor.
[[gnu::noinline]] void host_access(uintptr_t address, size_t size, Kind kind, uintptr_t place) {
  const Region* region = find_region(address, size);
  if (!region || !region->of_device) return;
  const char* verb = kind == Kind::kWrite ? "write" : "read";
  add_finding("memory.host_access",
              std::string("host code's ") + verb + " of device memory: " +
                  describe_byte(region, address),
              place);
}

// One access of at most 16 bytes by the running thread.
template <bool kAligned>
inline void access(uintptr_t address, unsigned size, Kind kind, uintptr_t place) {
  if (address - hot.local_low < hot.local_bytes) return;
  if (address - hot.identity_low < hot.identity_bytes) return;
  if (hot.mode == 2) settle_store();
  Site* site = find_site(place, size, kind);
  if (__builtin_expect(!site->holds(address, size), 0)) locate(site, address, size, kind, place);
  Region* region = site->region;
  if (region->space == Space::kIgnored) return;
  if (kAligned && __builtin_expect(address & (size - 1), 0)) misaligned(address, size, place);
  if (__builtin_expect(hot.length == kTraceLength, 0)) preempt();
  uint16_t& id = site->ids[region->space == Space::kShared];
  if (__builtin_expect(!id, 0)) id = new_site_id(site, region->space);
  hot.entries[hot.length++] = uint64_t{id} << 48 | (address & 0xffffffffffffull);
  if (kind != Kind::kWrite && region->space == Space::kGlobal && !region->initialised) {
    check_initialised(region, address, size, id);
  }
  check_race(region, address, size, kind, id);
  if (kind == Kind::kAtomic) note_atomic();
}

// An access of any size and alignment, in the widest pieces that its alignment allows.
[[gnu::noinline]] void access_range(uintptr_t address, size_t size, Kind kind, uintptr_t place) {
  if (address - hot.local_low < hot.local_bytes) return;
  while (size) {
    unsigned piece = 16;
    while (piece > 1 && ((address & (piece - 1)) || piece > size)) piece /= 2;
    access<false>(address, piece, kind, place);
    address += piece;
    size -= piece;
  }
}

}  // namespace
}  // namespace kgemu

using namespace kgemu;

#define KGEMU_PLACE reinterpret_cast<uintptr_t>(__builtin_return_address(0))
#define KGEMU_ADDRESS reinterpret_cast<uintptr_t>(address)

#define KGEMU_SEE(ACCESS, SIZE, KIND)                                  \
  if (hot.mode) {                                                      \
    ACCESS(KGEMU_ADDRESS, SIZE, KIND, KGEMU_PLACE);                    \
  } else if (__builtin_expect(hot.host, 0)) {                          \
    host_access(KGEMU_ADDRESS, SIZE, KIND, KGEMU_PLACE);               \
  }

#define KGEMU_CALLBACKS(N)                                                                       \
  void __tsan_read##N(void* address) { KGEMU_SEE(access<true>, N, Kind::kRead) }                 \
  void __tsan_write##N(void* address) { KGEMU_SEE(access<true>, N, Kind::kWrite) }               \
  void __tsan_unaligned_read##N(void* address) { KGEMU_SEE(access_range, N, Kind::kRead) }       \
  void __tsan_unaligned_write##N(void* address) { KGEMU_SEE(access_range, N, Kind::kWrite) }     \
  void __tsan_volatile_read##N(void* address) { KGEMU_SEE(access<true>, N, Kind::kRead) }        \
  void __tsan_volatile_write##N(void* address) { KGEMU_SEE(access<true>, N, Kind::kWrite) }

extern "C" {

void __tsan_init(void) {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit(void) {}

KGEMU_CALLBACKS(1)
KGEMU_CALLBACKS(2)
KGEMU_CALLBACKS(4)
KGEMU_CALLBACKS(8)
KGEMU_CALLBACKS(16)

void __tsan_read_range(void* address, unsigned long size) {
  KGEMU_SEE(access_range, size, Kind::kRead)
}
void __tsan_write_range(void* address, unsigned long size) {
  KGEMU_SEE(access_range, size, Kind::kWrite)
}
void __tsan_vptr_update(void** address, void*) {
  if (hot.mode) access<true>(KGEMU_ADDRESS, 8, Kind::kWrite, KGEMU_PLACE);
}
void __tsan_vptr_read(void** address) {
  if (hot.mode) access<true>(KGEMU_ADDRESS, 8, Kind::kRead, KGEMU_PLACE);
}

void kgemu_atomic_begin(const volatile void* address, unsigned bytes) {
  hot.mode_after_atomic = 0;
  if (!hot.mode) return;
  access<true>(reinterpret_cast<uintptr_t>(address), bytes, Kind::kAtomic, KGEMU_PLACE);
  hot.mode_after_atomic = 1;
  hot.mode = 0;
}
void kgemu_atomic_end(void) { hot.mode = hot.mode_after_atomic; }

void kgemu_watch_host(int watched) { hot.host = watched != 0; }

void kgemu_fence(void) { hot.fenced = true; }

void* kgemu_memcpy(void* target, const void* source, size_t bytes) {
  if (hot.mode) {
    access_range(reinterpret_cast<uintptr_t>(source), bytes, Kind::kRead, KGEMU_PLACE);
    access_range(reinterpret_cast<uintptr_t>(target), bytes, Kind::kWrite, KGEMU_PLACE);
  } else if (hot.host && bytes) {
    host_access(reinterpret_cast<uintptr_t>(source), bytes, Kind::kRead, KGEMU_PLACE);
    host_access(reinterpret_cast<uintptr_t>(target), bytes, Kind::kWrite, KGEMU_PLACE);
  }
  return std::memmove(target, source, bytes);
}

void* kgemu_memset(void* target, int value, size_t bytes) {
  if (hot.mode) {
    access_range(reinterpret_cast<uintptr_t>(target), bytes, Kind::kWrite, KGEMU_PLACE);
  } else if (hot.host && bytes) {
    host_access(reinterpret_cast<uintptr_t>(target), bytes, Kind::kWrite, KGEMU_PLACE);
  }
  return std::memset(target, value, bytes);
}

// Source that uses the compiler's atomic builtins (or std::atomic) calls these; one OS thread runs
// everything, so that plain operations are atomic.
#define KGEMU_ATOMIC_OP(BITS, T, NAME, RESULT)                                                 \
  T __tsan_atomic##BITS##_##NAME(volatile T* address, T operand, int) {                        \
    if (hot.mode) access<true>(KGEMU_ADDRESS_V, BITS / 8, Kind::kAtomic, KGEMU_PLACE);         \
    T old = *address;                                                                          \
    *address = static_cast<T>(RESULT);                                                         \
    return old;                                                                                \
  }
#define KGEMU_ADDRESS_V reinterpret_cast<uintptr_t>(address)
#define KGEMU_ATOMICS(BITS, T)                                                                 \
  KGEMU_ATOMIC_OP(BITS, T, exchange, operand)                                                  \
  KGEMU_ATOMIC_OP(BITS, T, fetch_add, old + operand)                                           \
  KGEMU_ATOMIC_OP(BITS, T, fetch_sub, old - operand)                                           \
  KGEMU_ATOMIC_OP(BITS, T, fetch_and, old & operand)                                           \
  KGEMU_ATOMIC_OP(BITS, T, fetch_or, old | operand)                                            \
  KGEMU_ATOMIC_OP(BITS, T, fetch_xor, old ^ operand)                                           \
  KGEMU_ATOMIC_OP(BITS, T, fetch_nand, ~(old & operand))                                       \
  T __tsan_atomic##BITS##_load(const volatile T* address, int) {                               \
    if (hot.mode) access<true>(KGEMU_ADDRESS_V, BITS / 8, Kind::kAtomic, KGEMU_PLACE);         \
    return *address;                                                                           \
  }                                                                                            \
  void __tsan_atomic##BITS##_store(volatile T* address, T value, int) {                        \
    if (hot.mode) access<true>(KGEMU_ADDRESS_V, BITS / 8, Kind::kAtomic, KGEMU_PLACE);         \
    *address = value;                                                                          \
  }                                                                                            \
  int __tsan_atomic##BITS##_compare_exchange_strong(volatile T* address, T* expected, T value, \
                                                    int, int) {                                \
    if (hot.mode) access<true>(KGEMU_ADDRESS_V, BITS / 8, Kind::kAtomic, KGEMU_PLACE);         \
    T old = *address;                                                                          \
    if (old == *expected) {                                                                    \
      *address = value;                                                                        \
      return 1;                                                                                \
    }                                                                                          \
    *expected = old;                                                                           \
    return 0;                                                                                  \
  }                                                                                            \
  int __tsan_atomic##BITS##_compare_exchange_weak(volatile T* address, T* expected, T value,   \
                                                  int success, int failure) {                  \
    return __tsan_atomic##BITS##_compare_exchange_strong(address, expected, value, success,    \
                                                         failure);                             \
  }                                                                                            \
  T __tsan_atomic##BITS##_compare_exchange_val(volatile T* address, T expected, T value, int,  \
                                               int) {                                          \
    if (hot.mode) access<true>(KGEMU_ADDRESS_V, BITS / 8, Kind::kAtomic, KGEMU_PLACE);         \
    T old = *address;                                                                          \
    if (old == expected) *address = value;                                                     \
    return old;                                                                                \
  }

KGEMU_ATOMICS(8, uint8_t)
KGEMU_ATOMICS(16, uint16_t)
KGEMU_ATOMICS(32, uint32_t)
KGEMU_ATOMICS(64, uint64_t)

void __tsan_atomic_thread_fence(int) { hot.fenced = true; }
void __tsan_atomic_signal_fence(int) {}

}  // extern "C"
