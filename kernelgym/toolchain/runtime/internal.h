// What the files of the runtime share. Nothing here is visible outside libkgemu.so.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../include/cuda/kgemu/core.h"

#pragma GCC visibility push(hidden)

namespace kgemu {

constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kMaxWarps = kMaxThreads / 32;
constexpr size_t kDefaultSharedLimit = 48 * 1024;
constexpr size_t kLargestShared = 227 * 1024;

enum Error {
  kSuccess = 0,
  kInvalidValue = 1,
  kInvalidConfiguration = 9,
  kInvalidDeviceFunction = 98,
  kIllegalAddress = 700,
  kAssert = 710,
  kStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kLaunchFailure = 719,
};

// ---- context.cpp: fibers and signals ----

struct Fiber {
  void* stack_pointer;  // where it is suspended
  char* stack;          // lowest usable address
  unsigned index;
  int thread;           // the thread it belongs to while suspended or running, or -1
};

// One reserved address range holds what kernels may touch but nobody checks: first an arena for warp
// exchanges, then the stacks. So that local memory is recognised by one comparison.
struct FiberPool {
  char* base = nullptr;
  size_t bytes = 0;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Fiber*> free;

  void reserve();
  Fiber* take();           // a free fiber, made if need be
  void recycle_all();      // forgets whatever runs on any fiber
  bool is_guard(const void* address) const;
  void* arena() const { return base; }
};
extern FiberPool fiber_pool;

// Goes from the scheduler to a fiber; returns when that fiber yields.
void enter_fiber(Fiber* fiber);
// Goes from the current fiber back to the scheduler.
void leave_fiber();
// Goes back to the scheduler for good.
[[noreturn]] void leave_fiber_forever();
extern Fiber* current_fiber;

// Turns faults in kernels into findings while it lives.
class FaultGuard {
 public:
  FaultGuard();
  ~FaultGuard();
};

// ---- modules.cpp: what the loaded extension modules contain ----

struct SharedVariable {
  uintptr_t offset;      // in the module's TLS segment
  size_t bytes;
  std::string name;      // "tile"
  std::string owner;     // base name of the function it is declared in, or ""
  std::string function;  // that function in full, with template arguments
};

struct Module {
  std::string path;
  uintptr_t base;
  std::vector<std::pair<uintptr_t, size_t>> segments;  // loaded, not thread-local
  size_t tls_bytes = 0;
  size_t tls_align = 1;
  std::vector<SharedVariable> shared;

  // The largest static shared memory of any instantiation of the kernel of that base name.
  size_t static_shared(const std::string& kernel) const;
};

// The module that contains a code or data address; null when there is none.
Module* find_module(const void* address);
// Start of the calling thread's TLS block of the module, given the address of a variable in it.
uintptr_t tls_block(const void* anchor, Module** module);
// "ns::softmax<float, 4>" -> "softmax"; also takes demangled signatures.
std::string base_name(const std::string& kernel);
// Base name of the function at an address, "" when unknown.
std::string function_at(const void* address, Module** module);

// ---- memory.cpp: the memory that the device knows ----

enum class Space : uint8_t { kGlobal, kShared, kIgnored };

struct Cell;  // shadow.cpp

struct Region {
  uintptr_t low = 0;
  size_t bytes = 0;
  size_t capacity = 0;        // bytes that `bytes` may grow to; 0: never grows
  Space space = Space::kGlobal;
  bool initialised = true;    // all of it
  bool guarded = false;       // allocated by kgemu_alloc
  bool of_device = false;     // on a GPU the host could not touch it
  bool written = false;       // by an instrumented access of this launch
  unsigned references = 1;
  std::string label;
  const Module* module = nullptr;        // static shared memory: whose
  // Made when first needed:
  uint8_t* written_bytes = nullptr;      // a bit for each byte
  Cell* words = nullptr;                 // race state of each aligned 4-byte word
  Cell* bytes_cells = nullptr;           // of each byte, for words accessed in parts
  uint32_t* sectors_read = nullptr;      // launch that last read each 32-byte sector from DRAM
  uint32_t* sectors_written = nullptr;

  bool contains(uintptr_t address, size_t size) const {
    return address - low < bytes && size <= bytes - (address - low);
  }
  size_t reach() const { return capacity ? capacity : bytes; }
  size_t word_count() const { return ((low & 3) + reach() + 3) / 4; }
  size_t sector_count() const { return ((low & 31) + reach() + 31) / 32; }
  void drop_shadow();
  void make_written_bytes();
  void mark_written(uintptr_t address, size_t size);
  bool is_written(uintptr_t address, size_t size) const;
  Region() = default;
  Region(const Region&) = delete;
  ~Region() { drop_shadow(); }
};

// Zero-filled memory that takes no room until touched.
void* lazy_zeros(size_t bytes);
void free_lazy(void* memory, size_t bytes);

Region* find_region(uintptr_t address, size_t size);
// An address relative to the nearest region, the same in every run: "byte 1028 of x (1024 bytes)".
std::string describe_address(uintptr_t address);
// "byte 12 of tile".
std::string describe_byte(const Region* region, uintptr_t address);
// Regions that only the running kernel may touch: shared memory and its arguments.
void set_launch_regions(std::vector<Region*> regions);
// Makes the __device__ and __constant__ variables (all data) of a module known.
void adopt_module(const Module& module);
// Calls with first address and bytes of each region that the host could not touch on a GPU.
void for_each_device_region(const std::function<void(uintptr_t, size_t)>& call);
// After blocks that nobody watched: what they wrote is unknown, so nothing counts as unwritten.
void assume_all_written(bool only_written_regions);
void begin_region_launch();
extern uint64_t region_generation;  // grows when a region goes away

// ---- counts.cpp: requests of a warp ----

struct Counts {
  uint64_t accesses = 0;
  uint64_t global_load_requests = 0, global_load_sectors = 0, global_load_bytes = 0;
  uint64_t global_store_requests = 0, global_store_sectors = 0, global_store_bytes = 0;
  uint64_t shared_load_requests = 0, shared_load_wavefronts = 0, shared_load_conflicts = 0;
  uint64_t shared_load_bytes = 0;
  uint64_t shared_store_requests = 0, shared_store_wavefronts = 0, shared_store_conflicts = 0;
  uint64_t shared_store_bytes = 0;
  uint64_t global_atomic_requests = 0, global_atomic_sectors = 0, global_atomics = 0;
  uint64_t shared_atomic_requests = 0, shared_atomics = 0, atomic_serialisations = 0;
  uint64_t dram_read_bytes = 0, dram_write_bytes = 0;
  uint64_t barriers = 0, warp_exchanges = 0;
  uint64_t blocks = 0, warps = 0, threads = 0, divergent_warps = 0;

  void add(const Counts& part, double factor);
};
constexpr size_t kCountFields = sizeof(Counts) / sizeof(uint64_t);
extern const char* const kCountNames[kCountFields];

enum class Kind : uint8_t { kRead, kWrite, kAtomic };

// One place in the code that accesses memory, with one width and direction.
struct Site {
  uintptr_t return_address = 0;
  uint8_t size = 0;
  Kind kind = Kind::kRead;
  uint16_t ids[2] = {0, 0};  // in global and in shared memory; 0: not seen there yet
  // Where it last went: a region, or one variable of it.
  Region* region = nullptr;
  uintptr_t low = 0;
  size_t bytes = 0;

  bool holds(uintptr_t address, size_t access) const {
    return address - low < bytes && access <= bytes - (address - low);
  }
};
struct SiteInfo {
  Site* site = nullptr;
  Space space = Space::kGlobal;
};
extern std::vector<SiteInfo> site_infos;  // by id
constexpr size_t kSiteSlots = 1 << 17;
extern Site site_table[kSiteSlots];
inline Site* find_site(uintptr_t return_address, unsigned size, Kind kind) {
  uint64_t key = return_address + size * 0x10001ull + (static_cast<uint64_t>(kind) << 20);
  size_t slot = (key * 0x9E3779B97F4A7C15ull) >> 47;
  for (;; slot = (slot + 1) % kSiteSlots) {
    Site& site = site_table[slot];
    if (site.return_address == return_address && site.size == size && site.kind == kind) return &site;
    if (site.return_address) continue;
    site.return_address = return_address;
    site.size = static_cast<uint8_t>(size);
    site.kind = kind;
    return &site;
  }
}
uint16_t new_site_id(Site* site, Space space);
void forget_site_regions();

constexpr unsigned kTraceLength = 4096;  // accesses of a lane before the warp is grouped

// Access of one lane: site id in the upper 16 bits, address in the lower 48.
using TraceEntry = uint64_t;
struct WarpTrace {
  TraceEntry* entries[32];
  uint32_t length[32];
};
extern WarpTrace trace;
void make_trace();
// Groups what the warp's lanes did since the last call into requests and counts them.
void flush_trace(uint32_t full_mask);

// ---- guard.cpp: device memory out of the host's reach ----

// From now on (or no longer) the host's touching a tensor's pages is a finding.
void guard_device_memory(bool wanted);
// Whether launches and library calls are to leave everything as it is; see kgemu_do_nothing.
bool kernels_do_nothing();
// Before memory goes back to whoever gave it.
void release_pages(uintptr_t low, size_t bytes);
// As long as one lives, device memory may be touched: the device works.
class DeviceWork {
 public:
  DeviceWork();
  ~DeviceWork();
  DeviceWork(const DeviceWork&) = delete;
};

// ---- access.cpp and shadow.cpp: the callbacks ----

// State that every callback reads.
struct Hot {
  int mode = 0;                 // 0: nobody watches, 1: watching, 2: watching, a store to look at
  bool host = false;            // the host's accesses are watched, and no kernel runs
  int mode_after_atomic = 0;
  uintptr_t local_low = 0, local_bytes = 0;
  uintptr_t identity_low = 0, identity_bytes = 0;
  TraceEntry* entries = nullptr;  // of the running lane
  uint32_t length = 0;
  uint32_t thread = 0;          // linear in the block
  uint32_t epoch = 0;           // grows with each block and barrier
  uint32_t block_epoch = 0;     // the block's first
  uint32_t launch_epoch = 0;    // the launch's first
  uint32_t warp_clock = 0;      // exchanges of the warp in this block
  bool fenced = false;          // the thread has called __threadfence
};
extern Hot hot;

void check_initialised(Region* region, uintptr_t address, unsigned size, uint16_t site);
void settle_store();               // looks at the value of a store that may race
void start_shadow_launch();
void start_shadow_block(uint64_t block);
uint64_t block_of_epoch(uint32_t epoch);
void note_atomic();                // release and acquire between blocks

// ---- report.cpp ----

struct Place {
  std::string module;
  uint64_t offset = 0;
};
struct Party {
  uint64_t block = 0;
  unsigned thread = 0;
  std::string access;  // "read", "write", "atomic"
  Place place;
};
Place place_of(uintptr_t return_address);
// Adds a finding about the running kernel unless this kernel and place already have it, or there
// are enough.
// `return_address` 0: no place.
void add_finding(const char* code, const std::string& text, uintptr_t return_address,
                 const Party* other = nullptr);
// Whether add_finding would drop it.
bool is_known_finding(const char* code, uintptr_t return_address);

struct LaunchRecord {
  std::string kernel, file;
  int line = 0;
  dim3 grid, block;
  size_t static_shared = 0, dynamic_shared = 0;
  bool checked = false, sampled = false, completed = false;
  uint64_t repeats = 1;
  bool library = false;     // a call of a library: `counts` holds its traffic
  uint64_t library_flops = 0;
  Counts counts;

  bool same_launch(const LaunchRecord& other) const;
};
extern std::deque<LaunchRecord> launch_records;
extern std::string printed;
void set_error(int error);
int current_error();

// ---- scheduler.cpp ----

struct Running {
  const kgemu_launch_config* config = nullptr;  // null: no kernel runs
  uint64_t block = 0;                           // linear index
  Counts counts;                                // of the running block
  bool divergent = false;                       // some request of the running warp lacked a lane
};
extern Running running;
extern unsigned run_order;
extern uint64_t access_budget, accesses_spent;
// Lets the other lanes of the warp run; called when a lane's trace is full.
void preempt();
[[noreturn]] void abandon(int error);
bool on_fiber();
// The x, y, z of a linear index.
uint3 unflatten(uint64_t linear, const dim3& extent);

}  // namespace kgemu

#pragma GCC visibility pop
