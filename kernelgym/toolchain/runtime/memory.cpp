// The memory that the emulated device knows: allocations with guard zones, registered tensors, the
// data of modules, shared memory; and copies from the host's side.
#include <stdlib.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>

#include "internal.h"

namespace kgemu {

uint64_t region_generation = 1;

namespace {

std::map<uintptr_t, std::unique_ptr<Region>> regions;        // by first address
std::vector<Region*> launch_regions;                          // of the running kernel only
// Registered pointers that lie in another region: pointer -> start of that region.
std::unordered_multimap<uintptr_t, uintptr_t> aliases;

size_t largest_region;

constexpr size_t kAlignment = 256;  // cudaMalloc's
constexpr size_t kLeastGuard = 4096;
constexpr size_t kMostGuard = 1 << 20;
constexpr uintptr_t kNullPage = 1 << 16;
constexpr size_t kMostToHost = 4096;  // bytes that forward may copy to the host: flags, sizes
constexpr size_t kHugePages = 8 << 20;  // shadows of this size are usually touched throughout

// An access beyond an allocation's end should not land in the next one: larger ones have wider
// zones, as their strides are larger.
size_t guard_bytes(size_t bytes) {
  size_t guard = std::min(std::max(bytes / 4, kLeastGuard), kMostGuard);
  return (guard + kAlignment - 1) & ~(kAlignment - 1);
}

Region* lookup(uintptr_t address, size_t size) {
  // Regions may lie inside others that were registered later: the innermost is the last to start.
  for (auto next = regions.upper_bound(address); next != regions.begin();) {
    Region* region = (--next)->second.get();
    if (region->contains(address, size)) return region;
    if (address - region->low >= largest_region) break;
  }
  return nullptr;
}

void add_region(std::unique_ptr<Region> region) {
  largest_region = std::max(largest_region, region->bytes);
  regions[region->low] = std::move(region);
}

void erase(uintptr_t low) {
  auto found = regions.find(low);
  if (found != regions.end()) release_pages(low, found->second->bytes);
  regions.erase(low);
  ++region_generation;
}

// A copy inside the device costs what a library's call of the same traffic would.
void record_copy(size_t bytes) {
  LaunchRecord call;
  call.kernel = "cudaMemcpy";
  call.grid = call.block = dim3(1, 1, 1);
  call.library = call.checked = call.completed = true;
  call.counts.dram_read_bytes = call.counts.dram_write_bytes = bytes;
  launch_records.push_back(call);
}

}  // namespace

void* lazy_zeros(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    fprintf(stderr, "kgemu: no memory for the shadow of %zu bytes\n", bytes);
    abort();
  }
  if (bytes >= kHugePages) madvise(memory, bytes, MADV_HUGEPAGE);
  return memory;
}

void free_lazy(void* memory, size_t bytes) {
  if (memory) munmap(memory, bytes);
}

Region* find_region(uintptr_t address, size_t size) {
  for (Region* region : launch_regions) {
    if (region->contains(address, size)) return region;
  }
  return lookup(address, size);
}

void set_launch_regions(std::vector<Region*> of_launch) {
  launch_regions = std::move(of_launch);
  ++region_generation;
}

void adopt_module(const Module& module) {
  for (const auto& segment : module.segments) {
    if (!segment.second || regions.count(segment.first)) continue;
    auto region = std::make_unique<Region>();
    region->low = segment.first;
    region->bytes = segment.second;
    region->label = "the module's variables";
    add_region(std::move(region));
  }
}

void assume_all_written(bool only_written_regions) {
  for (auto& entry : regions) {
    if (entry.second->written || !only_written_regions) entry.second->initialised = true;
  }
}

void for_each_device_region(const std::function<void(uintptr_t, size_t)>& call) {
  for (auto& entry : regions) {
    if (entry.second->of_device) call(entry.first, entry.second->bytes);
  }
}

void begin_region_launch() {
  for (auto& entry : regions) entry.second->written = false;
}

std::string describe_address(uintptr_t address) {
  const Region* nearest = nullptr;
  uintptr_t distance = ~uintptr_t{0};
  auto consider = [&](const Region* region) {
    if (region->space == Space::kIgnored) return;
    uintptr_t end = region->low + region->bytes;
    uintptr_t away = address < region->low ? region->low - address
                     : address >= end      ? address - end
                                           : 0;
    // Shared memory lies wherever the host's loader put it: near it means close by.
    if (away >= distance || (region->module && away > kLeastGuard)) return;
    distance = away;
    nearest = region;
  };
  for (auto& entry : regions) consider(entry.second.get());
  for (Region* region : launch_regions) consider(region);
  // The address itself would differ from run to run.
  if (address < kNullPage) return "address " + std::to_string(address) + ", a null pointer";
  if (!nearest || distance > kMostGuard) return "an address near no allocation of the device";
  bool before = address < nearest->low;
  return "byte " + std::string(before ? "-" : "") +
         std::to_string(before ? nearest->low - address : address - nearest->low) + " of " +
         nearest->label + " (" + std::to_string(nearest->bytes) + " bytes)";
}

std::string describe_byte(const Region* region, uintptr_t address) {
  uintptr_t offset = address - region->low;
  std::string name = region->label;
  size_t bytes = region->bytes;
  if (region->module) {
    for (const SharedVariable& variable : region->module->shared) {
      if (offset - variable.offset >= variable.bytes) continue;
      offset -= variable.offset;
      name = "__shared__ " + variable.name;
      bytes = variable.bytes;
      break;
    }
  }
  return "byte " + std::to_string(offset) + " of " + name + " (" + std::to_string(bytes) + " bytes)";
}

}  // namespace kgemu

using namespace kgemu;

extern "C" void* kgemu_alloc(size_t bytes, int initialised, const char* label) {
  size_t guard = guard_bytes(bytes);
  size_t total = guard + ((bytes + kAlignment - 1) & ~(kAlignment - 1)) + guard;
  void* memory = nullptr;
  if (total < bytes || posix_memalign(&memory, kAlignment, total) != 0) return nullptr;
  char* start = static_cast<char*>(memory) + guard;
  // All ones is a NaN in every floating-point format.
  if (!initialised) std::memset(start, 0xff, bytes);
  auto region = std::make_unique<Region>();
  region->low = reinterpret_cast<uintptr_t>(start);
  region->bytes = bytes;
  region->initialised = initialised;
  region->guarded = true;
  region->label = label && *label ? label : "an allocation";
  region->of_device = region->label != "cudaMallocManaged";
  add_region(std::move(region));
  return start;
}

extern "C" void kgemu_free(void* pointer) {
  auto found = regions.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == regions.end() || !found->second->guarded) {
    if (pointer) {
      kgemu_set_error(kInvalidValue);
      kgemu_finding("memory.invalid_free", "the pointer was not allocated, or already freed");
    }
    return;
  }
  if (--found->second->references) return;
  char* start = static_cast<char*>(pointer);
  char* memory = start - guard_bytes(found->second->bytes);
  erase(found->first);
  free(memory);
}

extern "C" void kgemu_register(const void* pointer, size_t bytes, int initialised,
                               const char* label) {
  auto low = reinterpret_cast<uintptr_t>(pointer);
  if (!bytes) return;
  if (Region* outer = lookup(low, bytes)) {
    ++outer->references;
    aliases.emplace(low, outer->low);
    if (initialised) kgemu_mark_initialised(pointer, bytes);
    return;
  }
  auto region = std::make_unique<Region>();
  region->low = low;
  region->bytes = bytes;
  region->initialised = initialised;
  region->label = label && *label ? label : "a tensor";
  region->of_device = true;
  auto old = regions.find(low);
  if (old != regions.end()) erase(low);  // grew: the owner freed and allocated again
  add_region(std::move(region));
}

extern "C" void kgemu_unregister(const void* pointer) {
  auto low = reinterpret_cast<uintptr_t>(pointer);
  auto alias = aliases.find(low);
  uintptr_t target = low;
  if (alias != aliases.end()) {
    target = alias->second;
    aliases.erase(alias);
  }
  auto found = regions.find(target);
  if (found == regions.end()) return;
  if (found->second->guarded) {
    kgemu_free(reinterpret_cast<void*>(target));
  } else if (--found->second->references == 0) {
    erase(target);
  }
}

extern "C" void kgemu_mark_initialised(const void* pointer, size_t bytes) {
  auto low = reinterpret_cast<uintptr_t>(pointer);
  Region* region = find_region(low, bytes);
  if (region) region->mark_written(low, bytes);
}

extern "C" int kgemu_is_device_pointer(const void* pointer) {
  return find_region(reinterpret_cast<uintptr_t>(pointer), 1) != nullptr;
}

namespace {

// The device memory a host call names, or null after a finding.
Region* device_range(const char* call, const void* pointer, size_t bytes) {
  auto low = reinterpret_cast<uintptr_t>(pointer);
  Region* region = find_region(low, bytes);
  if (!region) {
    // A __device__ or __constant__ variable of a module that has launched nothing yet.
    if (const Module* module = find_module(pointer)) adopt_module(*module);
    region = find_region(low, bytes);
  }
  if (region) return region;
  kgemu_finding("memory.out_of_bounds",
                (std::string(call) + " of " + std::to_string(bytes) + " bytes at " +
                 describe_address(low)).c_str());
  kgemu_set_error(kInvalidValue);
  return nullptr;
}

}  // namespace

extern "C" int kgemu_host_copy(void* target, int target_is_device, const void* source,
                               int source_is_device, size_t bytes) {
  if (!bytes) return kSuccess;
  if (current_error() >= kIllegalAddress) return current_error();
  Region* from = source_is_device ? device_range("copy from the device", source, bytes) : nullptr;
  Region* to = target_is_device ? device_range("copy to the device", target, bytes) : nullptr;
  if ((source_is_device && !from) || (target_is_device && !to)) return kInvalidValue;
  DeviceWork work;
  std::memmove(target, source, bytes);
  if (hot.host && from && !to && bytes > kMostToHost) {
    kgemu_finding("memory.host_copy", "a copy of a tensor's values to the host");
  }
  if (hot.host && from && to) record_copy(bytes);
  auto low = reinterpret_cast<uintptr_t>(target);
  auto origin = reinterpret_cast<uintptr_t>(source);
  // Copying memory never written is no fault; reading the copy is, as far as it is still known.
  if (to && (!from || from->is_written(origin, bytes))) to->mark_written(low, bytes);
  return kSuccess;
}

extern "C" int kgemu_host_set(void* target, int value, size_t bytes) {
  if (!bytes) return kSuccess;
  if (current_error() >= kIllegalAddress) return current_error();
  Region* region = device_range("memset on the device", target, bytes);
  if (!region) return kInvalidValue;
  DeviceWork work;
  std::memset(target, value, bytes);
  region->mark_written(reinterpret_cast<uintptr_t>(target), bytes);
  return kSuccess;
}
