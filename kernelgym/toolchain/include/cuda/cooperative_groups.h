// Cooperative groups: blocks, tiles of a warp, coalesced threads, and the grid.
#pragma once

#include "cuda_runtime.h"

namespace cooperative_groups {

namespace details {

inline unsigned thread_rank_in_block() {
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
inline unsigned lanes_below() { return (1u << kgemu_lane()) - 1u; }

// The lane of the thread of that rank in a mask.
inline int lane_of_rank(unsigned mask, unsigned rank) {
  for (; rank > 0 && mask != 0; --rank) mask &= mask - 1;
  return mask == 0 ? kgemu_lane() : __builtin_ctz(mask);
}

// A shuffle of any trivially copyable type, 8 bytes at a time.
template <class T>
inline T shuffle(unsigned mask, T value, int lane, int line) {
  static_assert(std::is_trivially_copyable<T>::value, "groups exchange trivially copyable types");
  T result = value;
  char* to = reinterpret_cast<char*>(&result);
  const char* from = reinterpret_cast<const char*>(&value);
  for (size_t at = 0; at < sizeof(T); at += 8) {
    const size_t bytes = sizeof(T) - at < 8 ? sizeof(T) - at : 8;
    uint64_t slot = 0;
    __builtin_memcpy(&slot, from + at, bytes);
    slot = kgemu::shuffle(mask, slot, lane, line);
    __builtin_memcpy(to + at, &slot, bytes);
  }
  return result;
}

}  // namespace details

// What all groups within a warp share: they are a mask of lanes.
class lane_group {
 public:
  unsigned size() const { return static_cast<unsigned>(__builtin_popcount(mask_)); }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const {
    return static_cast<unsigned>(__builtin_popcount(mask_ & details::lanes_below()));
  }
  void sync(int line = __builtin_LINE()) const { kgemu_warp_sync(mask_, line); }
  template <class T>
  T shfl(T value, int rank, int line = __builtin_LINE()) const {
    const int inside = rank & static_cast<int>(size() - 1);
    const bool power = (size() & (size() - 1)) == 0;
    return details::shuffle(mask_, value, details::lane_of_rank(mask_, power ? inside : rank), line);
  }
  template <class T>
  T shfl_up(T value, unsigned delta, int line = __builtin_LINE()) const {
    const unsigned rank = thread_rank();
    const unsigned source = rank >= delta ? rank - delta : rank;
    return details::shuffle(mask_, value, details::lane_of_rank(mask_, source), line);
  }
  template <class T>
  T shfl_down(T value, unsigned delta, int line = __builtin_LINE()) const {
    const unsigned rank = thread_rank();
    const unsigned source = rank + delta < size() ? rank + delta : rank;
    return details::shuffle(mask_, value, details::lane_of_rank(mask_, source), line);
  }
  int any(int predicate, int line = __builtin_LINE()) const {
    return __any_sync(mask_, predicate, line);
  }
  int all(int predicate, int line = __builtin_LINE()) const {
    return __all_sync(mask_, predicate, line);
  }
  // Bit i is the thread of rank i.
  unsigned ballot(int predicate, int line = __builtin_LINE()) const {
    return packed(__ballot_sync(mask_, predicate, line));
  }
  template <class T>
  unsigned match_any(T value, int line = __builtin_LINE()) const {
    return packed(__match_any_sync(mask_, value, line));
  }
  template <class T>
  unsigned match_all(T value, int& all, int line = __builtin_LINE()) const {
    return packed(__match_all_sync(mask_, value, &all, line));
  }
  unsigned kgemu_mask() const { return mask_; }

 protected:
  explicit lane_group(unsigned mask) : mask_(mask) {}

 private:
  unsigned packed(unsigned lanes) const {
    unsigned result = 0;
    unsigned rank = 0;
    for (unsigned rest = mask_; rest != 0; rest &= rest - 1, ++rank)
      if (lanes & (rest & ~(rest - 1))) result |= 1u << rank;
    return result;
  }
  unsigned mask_;
};

class coalesced_group : public lane_group {
 public:
  explicit coalesced_group(unsigned mask) : lane_group(mask) {}
  unsigned meta_group_size() const { return 1; }
  unsigned meta_group_rank() const { return 0; }
};
// The threads of the warp that have not exited: what runs together here.
inline coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

class thread_block {
 public:
  static void sync(int line = __builtin_LINE()) { __syncthreads(line); }
  static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
  static unsigned num_threads() { return size(); }
  static unsigned thread_rank() { return details::thread_rank_in_block(); }
  static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
};
inline thread_block this_thread_block() { return thread_block(); }

template <unsigned Size, class Parent = void>
class thread_block_tile : public lane_group {
  static_assert(Size <= 32, "the emulator has tiles of at most one warp");
  static_assert((Size & (Size - 1)) == 0, "the size of a tile is a power of two");

 public:
  thread_block_tile()
      : lane_group((Size == 32 ? ~0u : (1u << (Size & 31u)) - 1u)
                   << (kgemu_lane() & ~static_cast<int>(Size - 1))) {}
  template <class Other>
  thread_block_tile(const thread_block_tile<Size, Other>&) : thread_block_tile() {}
  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }
  unsigned thread_rank() const { return static_cast<unsigned>(kgemu_lane()) & (Size - 1); }
  unsigned meta_group_size() const { return (thread_block::size() + Size - 1) / Size; }
  unsigned meta_group_rank() const { return thread_block::thread_rank() / Size; }
  template <class T>
  T shfl_xor(T value, int mask, int line = __builtin_LINE()) const {
    const int lane = kgemu_lane();
    const int source = (lane ^ mask) & 31;
    const bool inside = (source & ~static_cast<int>(Size - 1)) == (lane & ~static_cast<int>(Size - 1));
    return details::shuffle(kgemu_mask(), value, inside ? source : lane, line);
  }
};
template <unsigned Size>
inline thread_block_tile<Size, thread_block> tiled_partition(const thread_block&) {
  return {};
}
// A tile of a tile counts its group among those of the parent.
template <unsigned Size, class Parent>
class tile_of_tile : public thread_block_tile<Size, Parent> {
 public:
  unsigned meta_group_size() const { return Parent::size() / Size; }
  unsigned meta_group_rank() const {
    return (static_cast<unsigned>(kgemu_lane()) & (Parent::size() - 1)) / Size;
  }
};
template <unsigned Size, unsigned Outer, class Parent>
inline tile_of_tile<Size, thread_block_tile<Outer, Parent>> tiled_partition(
    const thread_block_tile<Outer, Parent>&) {
  static_assert(Size <= Outer, "a tile is no larger than what it is cut from");
  return {};
}

// A group whose size is known at run time only: a block, or a tile of a warp.
class thread_group {
 public:
  thread_group(const thread_block&) : mask_(0) {}
  thread_group(const lane_group& lanes) : mask_(lanes.kgemu_mask()) {}
  void sync(int line = __builtin_LINE()) const {
    if (mask_ == 0)
      __syncthreads(line);
    else
      kgemu_warp_sync(mask_, line);
  }
  unsigned size() const {
    return mask_ == 0 ? thread_block::size() : static_cast<unsigned>(__builtin_popcount(mask_));
  }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const {
    return mask_ == 0 ? thread_block::thread_rank()
                      : static_cast<unsigned>(__builtin_popcount(mask_ & details::lanes_below()));
  }

 private:
  unsigned mask_;
};
inline coalesced_group tiled_partition(const thread_group& parent, unsigned size) {
  if (size == 0 || size > 32 || (size & (size - 1)) != 0 || size > parent.size())
    kgemu_unsupported("tiled_partition: expected a power of two of at most 32");
  const unsigned lanes = size >= 32 ? ~0u : (1u << size) - 1u;
  return coalesced_group(lanes << (kgemu_lane() & ~static_cast<int>(size - 1)));
}

class grid_group {
 public:
  // Blocks run one after another, so that a grid can only wait for itself when it is one block.
  void sync(int line = __builtin_LINE()) const {
    if (num_blocks() > 1) kgemu_unsupported("grid.sync() of more than one block");
    __syncthreads(line);
  }
  bool is_valid() const { return true; }
  unsigned long long num_blocks() const {
    return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z;
  }
  unsigned long long block_rank() const {
    return (static_cast<unsigned long long>(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x +
           blockIdx.x;
  }
  unsigned long long size() const { return num_blocks() * thread_block::size(); }
  unsigned long long num_threads() const { return size(); }
  unsigned long long thread_rank() const {
    return block_rank() * thread_block::size() + thread_block::thread_rank();
  }
  dim3 group_dim() const { return gridDim; }
  dim3 dim_blocks() const { return gridDim; }
  dim3 block_index() const { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
};
inline grid_group this_grid() { return grid_group(); }

template <class Group>
inline void sync(const Group& group, int line = __builtin_LINE()) {
  group.sync(line);
}
template <class Group>
inline auto thread_rank(const Group& group) {
  return group.thread_rank();
}
template <class Group>
inline auto group_size(const Group& group) {
  return group.size();
}
template <class Group, class F>
inline void invoke_one(const Group& group, F&& function) {
  if (group.thread_rank() == 0) function();
}

}  // namespace cooperative_groups
