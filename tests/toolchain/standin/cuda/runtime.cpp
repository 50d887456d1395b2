// The emulator's memory calls, which here only keep count.
#include <kgemu_api.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#define EXPORT extern "C" __attribute__((visibility("default")))

static std::map<const void*, size_t> blocks;
static std::map<const void*, int> registrations;
static std::map<const void*, size_t> registered_bytes;
static std::string last_label;
static int last_initialised;
static size_t marked_bytes;

EXPORT void* kgemu_alloc(size_t bytes, int initialised, const char* label) {
  if (bytes > (size_t{1} << 40)) return nullptr;
  void* memory = std::malloc(bytes);
  std::memset(memory, 0xff, bytes);
  blocks[memory] = bytes;
  last_label = label;
  last_initialised = initialised;
  return memory;
}
EXPORT void kgemu_free(void* pointer) {
  if (!blocks.erase(pointer)) std::abort();
  std::free(pointer);
}
EXPORT void kgemu_register(const void* pointer, size_t bytes, int, const char*) {
  ++registrations[pointer];
  if (bytes > registered_bytes[pointer]) registered_bytes[pointer] = bytes;
}
EXPORT void kgemu_unregister(const void* pointer) {
  if (--registrations[pointer] < 0) std::abort();
  if (registrations[pointer] == 0) {
    registrations.erase(pointer);
    registered_bytes.erase(pointer);
  }
}
EXPORT void kgemu_mark_initialised(const void*, size_t bytes) { marked_bytes += bytes; }
static bool inside(const std::map<const void*, size_t>& ranges, const void* pointer) {
  auto after = ranges.upper_bound(pointer);
  if (after == ranges.begin()) return false;
  --after;
  return static_cast<const char*>(pointer) < static_cast<const char*>(after->first) + after->second;
}
EXPORT int kgemu_is_device_pointer(const void* pointer) {
  return inside(blocks, pointer) || inside(registered_bytes, pointer);
}

EXPORT size_t fake_blocks() { return blocks.size(); }
EXPORT size_t fake_registrations() { return registrations.size(); }
EXPORT const char* fake_last_label() { return last_label.c_str(); }
EXPORT int fake_last_initialised() { return last_initialised; }
EXPORT size_t fake_marked_bytes() {
  const size_t bytes = marked_bytes;
  marked_bytes = 0;
  return bytes;
}
