// Race state of memory, for shadow.cpp and access.cpp.
#pragma once

#include <algorithm>

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

// First epoch that matters to the access being looked at: shared memory starts anew in each block.
extern uint32_t earliest_epoch;

struct Access {
  Region* region;
  uintptr_t address;  // of the whole access
  unsigned size;
  Kind kind;
  uint16_t site;
};

void report_race(const Region* region, uintptr_t address, Kind kind, uint16_t site, Kind other_kind,
                 uint32_t other_epoch, Who other_who, uint16_t other_site);
void report_unwritten(const Region* region, uintptr_t address, Kind kind, uint16_t site);
// A store that races unless it writes what is there already: to be looked at after it happened.
void watch_store(const Access& access, Kind other_kind, const Cell& cell);
// Whether what that earlier block did is ordered before what the running block does now.
bool ordered_between_blocks(uint32_t earlier_epoch);
// For the bytes of a word that is accessed in parts.
void visit_bytes(Cell& word, const Access& access, uintptr_t first, unsigned count, size_t word_index);

inline bool of_other_block(uint32_t epoch) {
  return epoch >= earliest_epoch && epoch < hot.block_epoch;
}
inline bool is_me(Who who) { return (who & kThreadBits) == hot.thread; }
inline bool in_my_warp(Who who) { return (who & kThreadBits) / 32 == hot.thread / 32; }
inline bool before_exchange(Who who) {
  return in_my_warp(who) && (who >> kClockShift) != (hot.warp_clock & 0xfffff);
}
inline Who my_who() { return hot.thread | hot.warp_clock << kClockShift; }

// Whether a write of that time and thread is not ordered before the running thread.
inline bool unordered_write(const Cell& cell) {
  if (cell.write_epoch == hot.epoch) {
    return !is_me(cell.write_who) && !before_exchange(cell.write_who);
  }
  return of_other_block(cell.write_epoch) && !ordered_between_blocks(cell.write_epoch);
}

inline bool unordered_read(const Cell& cell, uint32_t* epoch, Who* who) {
  *epoch = cell.read_epoch;
  *who = cell.read_who;
  if (cell.read_epoch == hot.epoch) {
    if (cell.read_who & kManyWarpsFlag) return true;
    if (cell.read_who & kManyLanesFlag ? !before_exchange(cell.read_who)
                                       : !is_me(cell.read_who) && !before_exchange(cell.read_who)) {
      return true;
    }
  } else if (of_other_block(cell.read_epoch)) {
    return !ordered_between_blocks(cell.read_epoch);
  }
  *epoch = cell.other_block_read_epoch;
  *who = 0;
  return of_other_block(cell.other_block_read_epoch) &&
         !ordered_between_blocks(cell.other_block_read_epoch);
}

inline void note_read(Cell& cell, uint16_t site) {
  Who me = my_who();
  if (cell.read_epoch != hot.epoch) {
    if (of_other_block(cell.read_epoch)) cell.other_block_read_epoch = cell.read_epoch;
    cell.read_epoch = hot.epoch;
    cell.read_who = me;
    cell.read_site = site;
  } else if (!is_me(cell.read_who) || (cell.read_who & (kManyLanesFlag | kManyWarpsFlag))) {
    Who flags = cell.read_who & (kManyLanesFlag | kManyWarpsFlag);
    if (!in_my_warp(cell.read_who)) flags |= kManyWarpsFlag;
    // The first reader of several stays named, with the time of the last.
    cell.read_who = (cell.read_who & kThreadBits) | flags | kManyLanesFlag |
                    (hot.warp_clock << kClockShift);
  } else {
    cell.read_who = me;
  }
}

inline void visit(Cell& cell, const Access& access, uintptr_t address) {
  if (access.kind == Kind::kRead) {
    if (access.region->space == Space::kShared && cell.write_epoch < hot.block_epoch) {
      report_unwritten(access.region, address, access.kind, access.site);
    } else if (unordered_write(cell) && !(cell.write_who & kAtomicFlag)) {
      report_race(access.region, address, Kind::kRead, access.site, Kind::kWrite, cell.write_epoch,
                  cell.write_who, cell.write_site);
    }
    note_read(cell, access.site);
    return;
  }
  bool atomic = access.kind == Kind::kAtomic;
  bool atomic_before = cell.write_who & kAtomicFlag;
  uint32_t epoch;
  Who who;
  if (!(atomic && atomic_before) && unordered_write(cell)) {
    Kind other = atomic_before ? Kind::kAtomic : Kind::kWrite;
    if (atomic) {
      report_race(access.region, address, access.kind, access.site, other, cell.write_epoch,
                  cell.write_who, cell.write_site);
    } else {
      watch_store(access, other, cell);
    }
  } else if (!atomic && unordered_read(cell, &epoch, &who)) {
    report_race(access.region, address, access.kind, access.site, Kind::kRead, epoch, who,
                cell.read_site);
  }
  if (atomic && access.region->space == Space::kShared && cell.write_epoch < hot.block_epoch) {
    report_unwritten(access.region, address, access.kind, access.site);
  }
  cell.write_epoch = hot.epoch;
  cell.write_who = my_who() | (atomic ? kAtomicFlag : 0);
  cell.write_site = access.site;
}


inline void check_race(Region* region, uintptr_t address, unsigned size, Kind kind, uint16_t site) {
  if (__builtin_expect(!region->words, 0)) {
    region->words = static_cast<Cell*>(lazy_zeros(region->word_count() * sizeof(Cell)));
  }
  Access access{region, address, size, kind, site};
  earliest_epoch = region->space == Space::kShared ? hot.block_epoch : hot.launch_epoch;
  size_t index = (address >> 2) - (region->low >> 2);
  if (kind != Kind::kRead) {
    region->written = true;
    if (!region->initialised && region->space == Space::kGlobal) region->mark_written(address, size);
  }
  for (uintptr_t at = address, end = address + size; at < end; ++index) {
    uintptr_t next = std::min<uintptr_t>((at & ~uintptr_t{3}) + 4, end);
    Cell& cell = region->words[index];
    if (next - at == 4 && cell.write_site != kByBytes) {
      visit(cell, access, at);
    } else {
      visit_bytes(cell, access, at, static_cast<unsigned>(next - at), index);
    }
    at = next;
  }
}

}  // namespace kgemu

#pragma GCC visibility pop
