// Data races and memory never written.
//
// Two accesses of different threads conflict if one writes, not both are atomic, and nothing orders
// them: within a block a barrier does, within a warp also an exchange (__syncwarp, shuffles); between
// blocks only a __threadfence and an atomic by the first, then an atomic by the second. Lanes that
// an exchange's mask leaves out count as ordered too: errors are on the side of silence. So is a
// plain read beside an atomic, the first step of every compare-and-swap loop.
#include "shadow.h"

#include <algorithm>
#include <cstring>

namespace kgemu {
namespace {

// ---- Between blocks ----

std::vector<uint32_t> block_epochs;    // first epoch of each watched block of the launch
std::vector<uint64_t> block_numbers;
std::vector<bool> released;            // did a fence and then an atomic
bool any_released;                     // some earlier block did
bool acquired;                         // the running block did an atomic after that

size_t position_of(uint32_t epoch) {
  auto after = std::upper_bound(block_epochs.begin(), block_epochs.end(), epoch);
  return static_cast<size_t>(after - block_epochs.begin()) - 1;
}

bool ordered_between_blocks(uint32_t earlier) { return acquired && released[position_of(earlier)]; }

bool of_other_block(uint32_t epoch) {
  return epoch >= hot.launch_epoch && epoch < hot.block_epoch;
}

// ---- Reports ----

const char* verb(Kind kind) {
  return kind == Kind::kRead ? "read" : kind == Kind::kWrite ? "write" : "atomic";
}

void report_race(const Region* region, uintptr_t address, Kind kind, uint16_t site, Kind other_kind,
                 uint32_t other_epoch, Who other_who, uint16_t other_site) {
  bool shared = region->space == Space::kShared;
  Party other;
  other.block = block_of_epoch(other_epoch);
  other.thread = other_who & kThreadBits;
  other.access = verb(other_kind);
  if (other_site) other.place = place_of(site_infos[other_site].site->return_address);
  bool across = of_other_block(other_epoch);
  std::string text = std::string(verb(kind)) + " of byte " + std::to_string(address - region->low) +
                     " of " + region->label + " races with a " + verb(other_kind) + " by thread " +
                     index3(other.thread, blockDim);
  if (across) text += " of block " + index3(other.block, gridDim);
  text += across ? ": nothing orders blocks of one launch" : ": no barrier between them";
  add_finding(shared ? "race.shared" : "race.global", text,
              site_infos[site].site->return_address, &other);
}

// A store whose race is benign if it writes what is there already; looked at after it happened.
struct PendingStore {
  const Region* region;
  uintptr_t address;
  unsigned size;
  uint16_t site;
  Kind other_kind;
  uint32_t other_epoch;
  Who other_who;
  uint16_t other_site;
  unsigned char before[16];
} pending;

// ---- Rules ----

struct Access {
  Region* region;
  uintptr_t address;  // of the whole access
  unsigned size;
  Kind kind;
  uint16_t site;
};

bool is_me(Who who) { return (who & kThreadBits) == hot.thread; }
bool in_my_warp(Who who) { return (who & kThreadBits) / 32 == hot.thread / 32; }
bool before_exchange(Who who) {
  return in_my_warp(who) && (who >> kClockShift) != (hot.warp_clock & 0xfffff);
}
Who my_who() { return hot.thread | hot.warp_clock << kClockShift; }

// Whether a write of that time and thread is not ordered before the running thread.
bool unordered_write(const Cell& cell) {
  if (cell.write_epoch == hot.epoch) {
    return !is_me(cell.write_who) && !before_exchange(cell.write_who);
  }
  return of_other_block(cell.write_epoch) && !ordered_between_blocks(cell.write_epoch);
}

bool unordered_read(const Cell& cell, uint32_t* epoch, Who* who) {
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

void note_read(Cell& cell, uint16_t site) {
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
      add_finding("memory.uninitialised",
                  "read of byte " + std::to_string(address - access.region->low) + " of " +
                      access.region->label + ", which no thread of the block has written",
                  site_infos[access.site].site->return_address);
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
    } else if (hot.mode != 2) {
      pending = {access.region, access.address, access.size,   access.site, other,
                 cell.write_epoch, cell.write_who, cell.write_site, {}};
      std::memcpy(pending.before, reinterpret_cast<const void*>(access.address), access.size);
      hot.mode = 2;
    }
  } else if (!atomic && unordered_read(cell, &epoch, &who)) {
    report_race(access.region, address, access.kind, access.site, Kind::kRead, epoch, who,
                cell.read_site);
  }
  if (atomic && access.region->space == Space::kShared && cell.write_epoch < hot.block_epoch) {
    add_finding("memory.uninitialised",
                "atomic on byte " + std::to_string(address - access.region->low) + " of " +
                    access.region->label + ", which no thread of the block has written",
                site_infos[access.site].site->return_address);
  }
  cell.write_epoch = hot.epoch;
  cell.write_who = my_who() | (atomic ? kAtomicFlag : 0);
  cell.write_site = access.site;
}

[[gnu::noinline]] void visit_bytes(Cell& word, const Access& access, uintptr_t first, unsigned count,
                                   size_t word_index) {
  Region* region = access.region;
  if (!region->bytes_cells) {
    region->bytes_cells =
        static_cast<Cell*>(lazy_zeros(region->word_count() * 4 * sizeof(Cell)));
  }
  Cell* bytes = region->bytes_cells + word_index * 4;
  if (word.write_site != kByBytes) {
    for (int i = 0; i < 4; ++i) bytes[i] = word;
    word.write_site = kByBytes;
  }
  for (unsigned i = 0; i < count; ++i) visit(bytes[(first + i) & 3], access, first + i);
}

}  // namespace

void check_race(Region* region, uintptr_t address, unsigned size, Kind kind, uint16_t site) {
  if (__builtin_expect(!region->words, 0)) {
    region->words = static_cast<Cell*>(lazy_zeros(region->word_count() * sizeof(Cell)));
  }
  Access access{region, address, size, kind, site};
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

void check_initialised(Region* region, uintptr_t address, unsigned size, uint16_t site) {
  if (region->is_written(address, size)) return;
  add_finding("memory.uninitialised",
              "read of byte " + std::to_string(address - region->low) + " of " + region->label +
                  ", which nobody has written",
              site_infos[site].site->return_address);
}

void settle_store() {
  hot.mode = 1;
  const void* now = reinterpret_cast<const void*>(pending.address);
  if (std::memcmp(pending.before, now, pending.size) == 0) return;
  report_race(pending.region, pending.address, Kind::kWrite, pending.site, pending.other_kind,
              pending.other_epoch, pending.other_who, pending.other_site);
}

void note_atomic() {
  if (hot.fenced) released.back() = true;
  acquired |= any_released;
}

void start_shadow_launch() {
  hot.launch_epoch = ++hot.epoch;
  block_epochs.clear();
  block_numbers.clear();
  released.clear();
  any_released = false;
}

void start_shadow_block(uint64_t block) {
  hot.block_epoch = ++hot.epoch;
  if (!released.empty()) any_released |= released.back();
  block_epochs.push_back(hot.epoch);
  block_numbers.push_back(block);
  released.push_back(false);
  acquired = false;
}

uint64_t block_of_epoch(uint32_t epoch) { return block_numbers[position_of(epoch)]; }

// ---- Shadow memory of regions ----

void Region::drop_shadow() {
  free_lazy(written_bytes, reach() / 8 + 1);
  free_lazy(words, word_count() * sizeof(Cell));
  free_lazy(bytes_cells, word_count() * 4 * sizeof(Cell));
  free_lazy(sectors_read, sector_count() * sizeof(uint32_t));
  free_lazy(sectors_written, sector_count() * sizeof(uint32_t));
}

void Region::make_written_bytes() {
  if (!written_bytes) written_bytes = static_cast<uint8_t*>(lazy_zeros(reach() / 8 + 1));
}

void Region::mark_written(uintptr_t address, size_t size) {
  if (initialised) return;
  if (address == low && size == bytes) {
    initialised = true;
    return;
  }
  make_written_bytes();
  size_t at = address - low, end = at + size;
  if (size == 4 && at % 4 == 0) {
    written_bytes[at / 8] |= static_cast<uint8_t>(0xf << (at % 8));
    return;
  }
  while (at < end) {
    if (at % 8 == 0 && end - at >= 8) {
      written_bytes[at / 8] = 0xff;
      at += 8;
    } else {
      written_bytes[at / 8] |= static_cast<uint8_t>(1u << (at % 8));
      ++at;
    }
  }
}

bool Region::is_written(uintptr_t address, size_t size) const {
  if (initialised) return true;
  if (!written_bytes) return false;
  size_t at = address - low, end = at + size;
  if (size == 4 && at % 4 == 0) return (written_bytes[at / 8] >> (at % 8) & 0xf) == 0xf;
  for (; at < end; ++at) {
    if (!(written_bytes[at / 8] >> (at % 8) & 1)) return false;
  }
  return true;
}

}  // namespace kgemu
