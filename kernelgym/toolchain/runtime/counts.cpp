// Requests of warps, counted as the hardware's counters count them.
//
// The n-th execution of one place in the code (a site) by the lanes of a warp, between two points
// where the warp waits, is one request: that is what converged lanes do. From a request follow the
// 32-byte sectors (global memory), the wavefronts (shared memory: 32 banks of 4 bytes; accesses of 8
// and 16 bytes go by half and quarter warps), and the lanes that an atomic has to serialise.
// A warp diverges in a block if one of its requests lacks a thread that the warp started with: an `if`
// that some lanes take around a memory access, a tail, an early return.
// DRAM bytes are the sectors touched at least once by a launch: what a cache without limit leaves.
#include <algorithm>
#include <cstring>

#include "internal.h"

namespace kgemu {

WarpTrace trace;
std::vector<SiteInfo> site_infos(1);
Site site_table[kSiteSlots];

const char* const kCountNames[kCountFields] = {
    "accesses",
    "global_load_requests", "global_load_sectors", "global_load_bytes",
    "global_store_requests", "global_store_sectors", "global_store_bytes",
    "shared_load_requests", "shared_load_wavefronts", "shared_load_conflicts",
    "shared_load_bytes",
    "shared_store_requests", "shared_store_wavefronts", "shared_store_conflicts",
    "shared_store_bytes",
    "global_atomic_requests", "global_atomic_sectors", "global_atomics",
    "shared_atomic_requests", "shared_atomics", "atomic_serialisations",
    "dram_read_bytes", "dram_write_bytes",
    "barriers", "warp_exchanges",
    "blocks", "warps", "threads", "divergent_warps"};

namespace {

constexpr size_t kMaxSites = 0xfffe;
uint64_t regions_seen;

struct Request {
  uint32_t mask = 0;
  uintptr_t addresses[32];  // by lane, where `mask` has a bit
};

// Distinct values in order, for the few that one request has.
struct SmallSet {
  uintptr_t values[64];
  unsigned size = 0;
  void add(uintptr_t value) {
    if (size == 0 || value > values[size - 1]) {
      values[size++] = value;
      return;
    }
    if (value == values[size - 1]) return;
    uintptr_t* at = std::lower_bound(values, values + size, value);
    if (*at == value) return;
    std::memmove(at + 1, at, (values + size - at) * sizeof(value));
    *at = value;
    ++size;
  }
};

uint32_t* stamps(uint32_t*& of, const Region* region) {
  if (!of) of = static_cast<uint32_t*>(lazy_zeros(region->sector_count() * sizeof(uint32_t)));
  return of;
}

// Counts the sectors that this launch has not moved between DRAM and the chip before.
void count_dram(Site* site, const SmallSet& sectors, Kind kind, uintptr_t any_address) {
  Region* region = site->region;
  if (!region || !region->contains(any_address, 1)) region = find_region(any_address, 1);
  if (!region) return;
  uint32_t launch = hot.launch_epoch;
  uint32_t* read = stamps(region->sectors_read, region);
  uint32_t* written = stamps(region->sectors_written, region);
  size_t count = region->sector_count();
  for (unsigned i = 0; i < sectors.size; ++i) {
    size_t sector = sectors.values[i] - (region->low >> 5);
    if (sector >= count) continue;  // lanes of one request in two allocations
    if (kind != Kind::kWrite && read[sector] != launch && written[sector] != launch) {
      read[sector] = launch;
      running.counts.dram_read_bytes += 32;
    }
    if (kind != Kind::kRead && written[sector] != launch) {
      written[sector] = launch;
      running.counts.dram_write_bytes += 32;
    }
  }
}

unsigned count_serialisations(const Request& request) {
  uintptr_t sorted[32];
  unsigned n = 0;
  for (uint32_t mask = request.mask; mask; mask &= mask - 1) {
    sorted[n++] = request.addresses[__builtin_ctz(mask)];
  }
  std::sort(sorted, sorted + n);
  unsigned longest = 1, run = 1;
  for (unsigned i = 1; i < n; ++i) {
    run = sorted[i] == sorted[i - 1] ? run + 1 : 1;
    longest = std::max(longest, run);
  }
  return longest - 1;
}

void count_global(Site* site, const Request& request) {
  Counts& counts = running.counts;
  uint64_t lanes = static_cast<uint64_t>(__builtin_popcount(request.mask));
  SmallSet sectors;
  for (uint32_t mask = request.mask; mask; mask &= mask - 1) {
    uintptr_t address = request.addresses[__builtin_ctz(mask)];
    sectors.add(address >> 5);
    uintptr_t last = (address + site->size - 1) >> 5;
    if (last != address >> 5) sectors.add(last);
  }
  switch (site->kind) {
    case Kind::kRead:
      ++counts.global_load_requests;
      counts.global_load_sectors += sectors.size;
      counts.global_load_bytes += lanes * site->size;
      break;
    case Kind::kWrite:
      ++counts.global_store_requests;
      counts.global_store_sectors += sectors.size;
      counts.global_store_bytes += lanes * site->size;
      break;
    case Kind::kAtomic:
      ++counts.global_atomic_requests;
      counts.global_atomic_sectors += sectors.size;
      counts.global_atomics += lanes;
      counts.atomic_serialisations += count_serialisations(request);
  }
  count_dram(site, sectors, site->kind, request.addresses[__builtin_ctz(request.mask)]);
}

// Passes over the banks that the lanes of `mask` need: the most distinct words in one bank.
unsigned count_wavefronts(const Request& request, uint32_t mask, unsigned size) {
  SmallSet words;
  for (; mask; mask &= mask - 1) {
    uintptr_t address = request.addresses[__builtin_ctz(mask)];
    for (uintptr_t word = address >> 2; word <= (address + size - 1) >> 2; ++word) words.add(word);
  }
  uint8_t per_bank[32] = {};
  unsigned most = 0;
  for (unsigned i = 0; i < words.size; ++i) {
    most = std::max<unsigned>(most, ++per_bank[words.values[i] & 31]);
  }
  return most;
}

void count_shared(Site* site, const Request& request) {
  Counts& counts = running.counts;
  uint64_t lanes = static_cast<uint64_t>(__builtin_popcount(request.mask));
  if (site->kind == Kind::kAtomic) {
    ++counts.shared_atomic_requests;
    counts.shared_atomics += lanes;
    counts.atomic_serialisations += count_serialisations(request);
    return;
  }
  unsigned phase_lanes = site->size > 8 ? 8 : site->size > 4 ? 16 : 32;
  unsigned wavefronts = 0, conflicts = 0;
  for (unsigned first = 0; first < 32; first += phase_lanes) {
    uint32_t phase = (phase_lanes == 32 ? ~0u : (1u << phase_lanes) - 1) << first;
    if (!(request.mask & phase)) continue;
    unsigned passes = count_wavefronts(request, request.mask & phase, site->size);
    wavefronts += passes;
    conflicts += passes - 1;
  }
  if (site->kind == Kind::kRead) {
    ++counts.shared_load_requests;
    counts.shared_load_wavefronts += wavefronts;
    counts.shared_load_conflicts += conflicts;
    counts.shared_load_bytes += lanes * site->size;
  } else {
    ++counts.shared_store_requests;
    counts.shared_store_wavefronts += wavefronts;
    counts.shared_store_conflicts += conflicts;
    counts.shared_store_bytes += lanes * site->size;
  }
}

void count_request(uint16_t id, const Request& request, uint32_t full_mask) {
  const SiteInfo& info = site_infos[id];
  if (request.mask != full_mask) running.divergent = true;
  if (info.space == Space::kShared) {
    count_shared(info.site, request);
  } else {
    count_global(info.site, request);
  }
}

uint16_t site_of(TraceEntry entry) { return static_cast<uint16_t>(entry >> 48); }
uintptr_t address_of(TraceEntry entry) { return entry & 0xffffffffffffull; }

// While all lanes that did anything did it at the same sites. Returns how many entries that is.
uint32_t count_converged(uint32_t lanes, uint32_t full_mask) {
  uint32_t length = ~0u;
  for (uint32_t mask = lanes; mask; mask &= mask - 1) {
    length = std::min(length, trace.length[__builtin_ctz(mask)]);
  }
  unsigned first = static_cast<unsigned>(__builtin_ctz(lanes));
  Request request;
  request.mask = lanes;
  for (uint32_t i = 0; i < length; ++i) {
    uint16_t id = site_of(trace.entries[first][i]);
    for (uint32_t mask = lanes; mask; mask &= mask - 1) {
      int lane = __builtin_ctz(mask);
      TraceEntry entry = trace.entries[lane][i];
      if (site_of(entry) != id) return i;
      request.addresses[lane] = address_of(entry);
    }
    count_request(id, request, full_mask);
  }
  return length;
}

// The rest: the n-th entry of a site of each lane go together.
void count_diverged(uint32_t lanes, uint32_t from, uint32_t full_mask) {
  static std::vector<uint32_t> seen, offset;  // by site
  seen.resize(site_infos.size());
  offset.resize(site_infos.size());
  std::vector<uint16_t> sites, of_lane;
  std::vector<uint32_t> most(site_infos.size());
  auto forget = [&] {
    for (uint16_t id : of_lane) seen[id] = 0;
    of_lane.clear();
  };
  for (uint32_t mask = lanes; mask; mask &= mask - 1) {
    int lane = __builtin_ctz(mask);
    for (uint32_t i = from; i < trace.length[lane]; ++i) {
      uint16_t id = site_of(trace.entries[lane][i]);
      if (!seen[id]++) of_lane.push_back(id);
      if (!most[id]) sites.push_back(id);
      most[id] = std::max(most[id], seen[id]);
    }
    forget();
  }
  uint32_t total = 0;
  for (uint16_t id : sites) {
    offset[id] = total;
    total += most[id];
  }
  std::vector<Request> requests(total);
  for (uint32_t mask = lanes; mask; mask &= mask - 1) {
    int lane = __builtin_ctz(mask);
    for (uint32_t i = from; i < trace.length[lane]; ++i) {
      TraceEntry entry = trace.entries[lane][i];
      uint16_t id = site_of(entry);
      Request& request = requests[offset[id] + seen[id]];
      if (!seen[id]++) of_lane.push_back(id);
      request.mask |= 1u << lane;
      request.addresses[lane] = address_of(entry);
    }
    forget();
  }
  for (uint16_t id : sites) {
    for (uint32_t i = 0; i < most[id]; ++i) count_request(id, requests[offset[id] + i], full_mask);
  }
}

}  // namespace

void Counts::add(const Counts& part, double factor) {
  auto* to = reinterpret_cast<uint64_t*>(this);
  auto* from = reinterpret_cast<const uint64_t*>(&part);
  for (size_t i = 0; i < kCountFields; ++i) {
    to[i] += static_cast<uint64_t>(static_cast<double>(from[i]) * factor + 0.5);
  }
}

void make_trace() {
  if (trace.entries[0]) return;
  auto* memory = static_cast<TraceEntry*>(lazy_zeros(32 * kTraceLength * sizeof(TraceEntry)));
  for (int lane = 0; lane < 32; ++lane) trace.entries[lane] = memory + lane * kTraceLength;
}

void flush_trace(uint32_t full_mask) {
  uint32_t lanes = 0, shortest = ~0u, longest = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    uint32_t length = trace.length[lane];
    if (!length) continue;
    lanes |= 1u << lane;
    shortest = std::min(shortest, length);
    longest = std::max(longest, length);
    running.counts.accesses += length;
  }
  if (!lanes) return;
  uint32_t done = count_converged(lanes, full_mask);
  if (done < longest) count_diverged(lanes, done, full_mask);
  std::memset(trace.length, 0, sizeof(trace.length));
}

uint16_t new_site_id(Site* site, Space space) {
  if (site_infos.size() > kMaxSites) {
    kgemu_unsupported("kernels with more than 65534 places that access memory");
  }
  site_infos.push_back({site, space});
  return static_cast<uint16_t>(site_infos.size() - 1);
}

void forget_site_regions() {
  if (regions_seen == region_generation) return;
  regions_seen = region_generation;
  for (SiteInfo& info : site_infos) {
    if (info.site) info.site->bytes = 0;
  }
}

}  // namespace kgemu
