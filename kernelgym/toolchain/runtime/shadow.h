// Race state of memory, for shadow.cpp and access.cpp.
#pragma once

#include "internal.h"

#pragma GCC visibility push(hidden)

namespace kgemu {

// Who accessed a word (or byte), and when: thread in bits 0 to 9, flags, and in the upper 20 bits the
// exchanges that the thread's warp had completed in its block.
using Who = uint32_t;
constexpr Who kThreadBits = 0x3ff;
constexpr Who kAtomicFlag = 1u << 10;      // of a write
constexpr Who kManyLanesFlag = 1u << 10;   // of a read: by several lanes of that warp
constexpr Who kManyWarpsFlag = 1u << 11;   // of a read: by several warps
constexpr unsigned kClockShift = 12;

// Epochs grow with each block and each barrier; 0 is never.
struct Cell {
  uint32_t write_epoch;
  Who write_who;
  uint32_t read_epoch;
  Who read_who;
  uint32_t other_block_read_epoch;  // the last read by a block other than that of read_epoch
  uint16_t write_site;
  uint16_t read_site;
};
// In Region::words: see Region::bytes_cells instead.
constexpr uint16_t kByBytes = 0xffff;

}  // namespace kgemu

#pragma GCC visibility pop
