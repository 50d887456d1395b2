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

// ---- Reports ----

const char* verb(Kind kind) {
  return kind == Kind::kRead ? "read" : kind == Kind::kWrite ? "write" : "atomic";
}

}  // namespace

uint32_t earliest_epoch;

bool ordered_between_blocks(uint32_t earlier_epoch) {
  return acquired && released[position_of(earlier_epoch)];
}

void report_race(const Region* region, uintptr_t address, Kind kind, uint16_t site, Kind other_kind,
                 uint32_t other_epoch, Who other_who, uint16_t other_site) {
  bool shared = region->space == Space::kShared;
  const char* code = shared ? "race.shared" : "race.global";
  uintptr_t place = site_infos[site].site->return_address;
  if (is_known_finding(code, place)) return;
  Party other;
  other.block = block_of_epoch(other_epoch);
  other.thread = other_who & kThreadBits;
  other.access = verb(other_kind);
  if (other_site) other.place = place_of(site_infos[other_site].site->return_address);
  bool across = other.block != running.block;
  const char* reason = across ? " by another block: nothing orders the blocks of one launch"
                              : ": no barrier between them";
  std::string text = std::string(verb(kind)) + " of " + describe_byte(region, address) +
                     " races with a " + verb(other_kind) + reason;
  add_finding(code, text, place, &other);
}

void report_unwritten(const Region* region, uintptr_t address, Kind kind, uint16_t site) {
  uintptr_t place = site_infos[site].site->return_address;
  if (is_known_finding("memory.uninitialised", place)) return;
  bool shared = region->space == Space::kShared;
  add_finding("memory.uninitialised",
              std::string(verb(kind)) + " of " + describe_byte(region, address) + ", which " +
                  (shared ? "no thread of the block" : "nobody") + " has written",
              place);
}

namespace {

struct PendingStore {
  Access access;
  Kind other_kind;
  Cell cell;
  unsigned char before[16];
} pending;

}  // namespace

void watch_store(const Access& access, Kind other_kind, const Cell& cell) {
  if (hot.mode == 2) return;  // another word of the same store
  pending = {access, other_kind, cell, {}};
  std::memcpy(pending.before, reinterpret_cast<const void*>(access.address), access.size);
  hot.mode = 2;
}

void settle_store() {
  hot.mode = 1;
  const Access& access = pending.access;
  if (std::memcmp(pending.before, reinterpret_cast<const void*>(access.address), access.size) == 0) {
    return;
  }
  report_race(access.region, access.address, Kind::kWrite, access.site, pending.other_kind,
              pending.cell.write_epoch, pending.cell.write_who, pending.cell.write_site);
}

void visit_bytes(Cell& word, const Access& access, uintptr_t first, unsigned count,
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

void check_initialised(Region* region, uintptr_t address, unsigned size, uint16_t site) {
  if (region->is_written(address, size)) return;
  report_unwritten(region, address, Kind::kRead, site);
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
