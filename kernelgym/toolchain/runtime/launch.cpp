// Launches: what the driver would refuse, and the memory that a kernel finds when it starts.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "scheduler.h"

extern "C" {
uint3 threadIdx;
uint3 blockIdx;
dim3 blockDim;
dim3 gridDim;
}

namespace kgemu {

uint64_t access_budget = 200'000'000;
uint64_t accesses_spent = 0;

namespace {

std::mutex one_launch;
std::map<std::pair<const Module*, std::string>, int> dynamic_limits;  // of kernels, by base name

Region dynamic_shared, arguments_region;
std::map<uintptr_t, std::unique_ptr<Region>> static_regions;  // of modules, by their TLS block

constexpr size_t kDynamicAlignment = 1024;
constexpr size_t kDynamicGuard = 64 * 1024;
alignas(kDynamicAlignment) char dynamic_arena[kDynamicGuard + kLargestShared + kDynamicGuard];

char* dynamic_start() { return dynamic_arena + kDynamicGuard; }

std::string describe(const dim3& extent) {
  return "(" + std::to_string(extent.x) + ", " + std::to_string(extent.y) + ", " +
         std::to_string(extent.z) + ")";
}

bool refuse(const kgemu_launch_config& config, const char* code, int error,
            const std::string& text) {
  running.config = &config;
  running.block = 0;
  block_state.current = 0;
  add_finding(code, text, 0);
  running.config = nullptr;
  set_error(error);
  return false;
}

// Whether the driver would start it.
bool is_acceptable(const kgemu_launch_config& config, const Module* module, size_t static_bytes) {
  const dim3 &grid = config.grid, &block = config.block;
  uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (!threads || !grid.x || !grid.y || !grid.z) {
    return refuse(config, "launch.configuration", kInvalidConfiguration,
                  "expected at least one block and one thread, got grid " + describe(grid) +
                      ", block " + describe(block));
  }
  if (threads > kMaxThreads || block.x > 1024 || block.y > 1024 || block.z > 64) {
    return refuse(config, "launch.configuration", kInvalidConfiguration,
                  "expected at most 1024 threads a block (64 in z), got " + describe(block));
  }
  if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) {
    return refuse(config, "launch.configuration", kInvalidConfiguration,
                  "expected a grid of at most (2147483647, 65535, 65535), got " + describe(grid));
  }
  if (static_bytes > kDefaultSharedLimit) {
    return refuse(config, "launch.shared_memory", kInvalidConfiguration,
                  "expected at most 49152 bytes of static shared memory, got " +
                      std::to_string(static_bytes));
  }
  auto raised = dynamic_limits.find({module, base_name(config.kernel)});
  size_t limit = raised == dynamic_limits.end() ? kDefaultSharedLimit - static_bytes
                                                : static_cast<size_t>(raised->second);
  limit = std::min(std::max(limit, kDefaultSharedLimit - static_bytes), kLargestShared - static_bytes);
  if (config.dynamic_shared > limit) {
    return refuse(config, "launch.shared_memory", kInvalidValue,
                  "expected at most " + std::to_string(limit) +
                      " bytes of dynamic shared memory (beside " + std::to_string(static_bytes) +
                      " static ones; cudaFuncSetAttribute can raise it), got " +
                      std::to_string(config.dynamic_shared));
  }
  return true;
}

Region* static_region(const Module* module, uintptr_t block) {
  if (!block || !module->tls_bytes) return nullptr;
  std::unique_ptr<Region>& region = static_regions[block];
  if (!region || region->module != module) {
    region = std::make_unique<Region>();
    region->low = block;
    region->bytes = module->tls_bytes;
    region->space = Space::kShared;
    region->label = "static shared memory";
    region->module = module;
  }
  return region.get();
}

Region* shared_of_launch;

void prepare_regions(const kgemu_launch_config& config, const Module* module, uintptr_t block,
                     const void* arguments, size_t size) {
  std::vector<Region*> regions;
  shared_of_launch = module ? static_region(module, block) : nullptr;
  if (shared_of_launch) regions.push_back(shared_of_launch);
  dynamic_shared.low = reinterpret_cast<uintptr_t>(dynamic_start());
  dynamic_shared.bytes = config.dynamic_shared;
  dynamic_shared.capacity = kLargestShared;
  dynamic_shared.space = Space::kShared;
  dynamic_shared.label = "dynamic shared memory";
  regions.push_back(&dynamic_shared);
  arguments_region.low = reinterpret_cast<uintptr_t>(arguments);
  arguments_region.bytes = size;
  arguments_region.space = Space::kIgnored;
  arguments_region.label = "the kernel's arguments";
  regions.push_back(&arguments_region);
  set_launch_regions(std::move(regions));
  if (module) adopt_module(*module);
}

// Where the four index variables lie, which kernels read all the time.
void find_identity() {
  const std::pair<const void*, size_t> variables[] = {{&threadIdx, sizeof(threadIdx)},
                                                      {&blockIdx, sizeof(blockIdx)},
                                                      {&blockDim, sizeof(blockDim)},
                                                      {&gridDim, sizeof(gridDim)}};
  uintptr_t low = ~uintptr_t{0}, high = 0;
  for (const auto& variable : variables) {
    auto start = reinterpret_cast<uintptr_t>(variable.first);
    low = std::min(low, start);
    high = std::max(high, start + variable.second);
  }
  hot.identity_low = low;
  hot.identity_bytes = high - low;
}

constexpr size_t kMaxRecords = 2000;

void keep_record(LaunchRecord record) {
  if (launch_records.size() < kMaxRecords) {
    launch_records.push_back(std::move(record));
    return;
  }
  for (LaunchRecord& known : launch_records) {
    if (!known.same_launch(record)) continue;
    ++known.repeats;
    known.completed &= record.completed;
    known.sampled |= record.sampled;
    known.counts.add(record.counts, 1.0);
    return;
  }
  launch_records.back() = std::move(record);
}

}  // namespace

void poison_shared() {
  // All ones: a NaN in every floating-point format.
  std::memset(dynamic_start(), 0xff, dynamic_shared.bytes);
  if (!shared_of_launch) return;
  for (const SharedVariable& variable : shared_of_launch->module->shared) {
    std::memset(reinterpret_cast<char*>(shared_of_launch->low + variable.offset), 0xff, variable.bytes);
  }
}

}  // namespace kgemu

using namespace kgemu;

extern "C" void kgemu_launch(const kgemu_launch_config* config, void (*run_threads)(const void*),
                             const void* arguments, size_t size) {
  if (on_fiber()) {
    kgemu_unsupported("launching a kernel from a kernel");
    return;
  }
  std::lock_guard<std::mutex> lock(one_launch);
  if (current_error() >= kIllegalAddress) return;
  Module* module = nullptr;
  uintptr_t block = config->tls_anchor ? tls_block(config->tls_anchor, &module) : 0;
  size_t static_bytes = module ? module->static_shared(base_name(config->kernel)) : 0;
  if (!is_acceptable(*config, module, static_bytes) || kernels_do_nothing()) return;
  LaunchRecord record;
  record.kernel = config->kernel;
  record.file = config->file;
  record.line = config->line;
  record.grid = config->grid;
  record.block = config->block;
  record.static_shared = static_bytes;
  record.dynamic_shared = config->dynamic_shared;
  record.checked = config->checked;
  fiber_pool.reserve();
  if (config->checked) {
    prepare_regions(*config, module, block, arguments, size);
    forget_site_regions();
    begin_region_launch();
    make_trace();
    find_identity();
    hot.local_low = reinterpret_cast<uintptr_t>(fiber_pool.base);
    hot.local_bytes = fiber_pool.bytes;
    start_shadow_launch();
  } else {
    dynamic_shared.bytes = config->dynamic_shared;
  }
  {
    DeviceWork work;
    FaultGuard guard;
    bool host_watched = hot.host;
    hot.host = false;
    run_grid(*config, run_threads, arguments, record);
    hot.host = host_watched;
  }
  if (!config->checked) {
    assume_all_written(false);
  } else {
    if (record.sampled) assume_all_written(true);
    set_launch_regions({});
  }
  keep_record(std::move(record));
}

extern "C" void* kgemu_dynamic_shared(void) { return dynamic_start(); }

extern "C" size_t kgemu_dynamic_shared_size(void) { return dynamic_shared.bytes; }

extern "C" int kgemu_set_max_dynamic_shared(const void* function, int bytes) {
  Module* module = nullptr;
  std::string name = function_at(function, &module);
  if (name.empty()) return kInvalidDeviceFunction;
  if (bytes < 0 || static_cast<size_t>(bytes) > kLargestShared - module->static_shared(name)) {
    return kInvalidValue;
  }
  dynamic_limits[{module, name}] = bytes;
  return kSuccess;
}

extern "C" size_t kgemu_static_shared(const void* function) {
  Module* module = nullptr;
  std::string name = function_at(function, &module);
  return name.empty() ? 0 : module->static_shared(name);
}
