// Warp shuffles, votes, matches and reductions on the one exchange that core.h has.
#pragma once

#include "qualifiers.h"

namespace kgemu {

// What `source` deposited; the caller's own value where that lane is outside its segment or takes
// no part (undefined on the device).
template <class T>
KGEMU_INLINE T shuffle(unsigned mask, T value, int source, int line) {
  const kgemu_lanes* lanes = kgemu_warp_exchange(mask, to_slot(value), line);
  return (lanes->present >> source) & 1u ? from_slot<T>(lanes->slot[source]) : value;
}

template <class T, class Combine>
inline T reduce_lanes(unsigned mask, T value, int line, Combine combine) {
  const kgemu_lanes* lanes = kgemu_warp_exchange(mask, to_slot(value), line);
  unsigned present = lanes->present & mask;
  T result = from_slot<T>(lanes->slot[__builtin_ctz(present)]);
  for (present &= present - 1; present != 0; present &= present - 1)
    result = combine(result, from_slot<T>(lanes->slot[__builtin_ctz(present)]));
  return result;
}

// Lanes of the mask that deposited `value`.
inline unsigned lanes_with(const kgemu_lanes* lanes, unsigned mask, uint64_t value) {
  unsigned equal = 0;
  for (unsigned rest = lanes->present & mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    if (lanes->slot[lane] == value) equal |= 1u << lane;
  }
  return equal;
}

}  // namespace kgemu

template <class T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = warpSize,
                     int line = __builtin_LINE()) {
  const int segment = kgemu_lane() & ~(width - 1);
  return kgemu::shuffle(mask, value, segment | (source & (width - 1)), line);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                        int line = __builtin_LINE()) {
  const int lane = kgemu_lane();
  const bool inside = static_cast<unsigned>(lane & (width - 1)) >= delta;
  return kgemu::shuffle(mask, value, inside ? lane - static_cast<int>(delta) : lane, line);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                          int line = __builtin_LINE()) {
  const int lane = kgemu_lane();
  const bool inside = static_cast<unsigned>(lane & (width - 1)) + delta < static_cast<unsigned>(width);
  return kgemu::shuffle(mask, value, inside ? lane + static_cast<int>(delta) : lane, line);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize,
                         int line = __builtin_LINE()) {
  const int lane = kgemu_lane();
  const int source = (lane ^ lane_mask) & 31;
  // Earlier segments may be read, later ones may not.
  const bool inside = source < (lane & ~(width - 1)) + width;
  return kgemu::shuffle(mask, value, inside ? source : lane, line);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return kgemu::lanes_with(kgemu_warp_exchange(mask, predicate != 0, line), mask, 1);
}
inline int __any_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return __ballot_sync(mask, predicate, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return __ballot_sync(mask, predicate == 0, line) == 0;
}
inline int __uni_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  const kgemu_lanes* lanes = kgemu_warp_exchange(mask, predicate != 0, line);
  const unsigned yes = kgemu::lanes_with(lanes, mask, 1);
  return yes == 0 || yes == (lanes->present & mask);
}
template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, int line = __builtin_LINE()) {
  const uint64_t slot = kgemu::to_slot(value);
  return kgemu::lanes_with(kgemu_warp_exchange(mask, slot, line), mask, slot);
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int* all, int line = __builtin_LINE()) {
  const uint64_t slot = kgemu::to_slot(value);
  const kgemu_lanes* lanes = kgemu_warp_exchange(mask, slot, line);
  *all = kgemu::lanes_with(lanes, mask, slot) == (lanes->present & mask);
  return *all ? lanes->present & mask : 0u;
}

#define KGEMU_REDUCE(T, name, expression)                                        \
  inline T name(unsigned mask, T value, int line = __builtin_LINE()) {           \
    return kgemu::reduce_lanes(mask, value, line, [](T a, T b) -> T { return expression; }); \
  }
KGEMU_REDUCE(unsigned, __reduce_add_sync, a + b)
KGEMU_REDUCE(int, __reduce_add_sync, static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b)))
KGEMU_REDUCE(unsigned, __reduce_min_sync, a < b ? a : b)
KGEMU_REDUCE(int, __reduce_min_sync, a < b ? a : b)
KGEMU_REDUCE(unsigned, __reduce_max_sync, a > b ? a : b)
KGEMU_REDUCE(int, __reduce_max_sync, a > b ? a : b)
KGEMU_REDUCE(unsigned, __reduce_and_sync, a & b)
KGEMU_REDUCE(unsigned, __reduce_or_sync, a | b)
KGEMU_REDUCE(unsigned, __reduce_xor_sync, a ^ b)
#undef KGEMU_REDUCE

inline void __nanosleep(unsigned) {}
inline long long clock64() { return kgemu_clock(); }
inline long long globaltimer() { return kgemu_clock(); }
[[noreturn]] inline void __trap() { kgemu_trap(); }
