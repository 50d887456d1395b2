// Findings, errors, kernel output, and the report that gathers them.
//
// kgemu_report() gives one JSON object:
//   launches    in order; each {kernel, file, line, grid [x, y, z], block [x, y, z], shared_static,
//               shared_dynamic (bytes), owner ("own", or "library" for a call of cuBLAS), flops (of a
//               library), checked, completed, sampled, counts}. `counts` maps the names
//               in counts.cpp to whole numbers, and is empty for unchecked launches. `sampled`: only
//               some blocks were watched, and counts are scaled up to all.
//   findings    at most 20; each {code, kernel, block [x, y, z], thread [x, y, z], text, where, other}.
//               `where` is null or {module, offset}: file name of the module and an offset in it that
//               addr2line understands. `other` is null or the other side of a race or deadlock:
//               {block, thread, access ("read", "write", "atomic" or "barrier"), where}. Outside of
//               kernels `kernel` is "".
//   last_error  a cudaError_t number
//   printf      what kernels printed, at most 64 KiB
// Codes: memory.out_of_bounds, memory.uninitialised, memory.misaligned, memory.stack_overflow,
// memory.invalid_free, memory.host_access, memory.host_copy, race.shared, race.global, barrier.deadlock, barrier.divergent, warp.mask,
// launch.configuration, launch.shared_memory, arithmetic.division_by_zero, assert, trap, unsupported.
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>

#include <algorithm>

#include "scheduler.h"

namespace kgemu {

std::deque<LaunchRecord> launch_records;
std::string printed;

namespace {

struct Finding {
  std::string code, kernel, text;
  bool in_kernel = false;
  uint3 block{}, thread{};
  uintptr_t return_address = 0;
  Place where;
  bool has_other = false;
  uint3 other_block{}, other_thread{};
  Party other;
};

constexpr size_t kMaxFindings = 20;
constexpr size_t kMaxPrinted = 64 * 1024;
std::vector<Finding> findings;
int error_state;
std::string report;
long long clock_ticks;

// ---- JSON ----

// Bytes that are no UTF-8 (a kernel may print anything) become U+FFFD.
size_t utf8_length(const std::string& text, size_t at) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  unsigned first = byte(at);
  size_t length = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0
                  ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  }
  unsigned second = byte(at + 1);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) {
    return 0;
  }
  return length;
}

void put(std::string& out, const std::string& text) {
  out += '"';
  for (size_t i = 0; i < text.size();) {
    size_t length = utf8_length(text, i);
    auto byte = static_cast<unsigned char>(text[i]);
    if (length == 0) {
      out += "\\ufffd";
    } else if (byte == '"' || byte == '\\') {
      out += '\\';
      out += text[i];
    } else if (byte < 0x20) {
      char escaped[8];
      snprintf(escaped, sizeof(escaped), "\\u%04x", byte);
      out += escaped;
    } else {
      out.append(text, i, length);
    }
    i += std::max<size_t>(length, 1);
  }
  out += '"';
}

void put(std::string& out, const char* key, const std::string& text) {
  out += '"';
  out += key;
  out += "\":";
  put(out, text);
}

void put(std::string& out, const char* key, uint64_t number) {
  out += '"';
  out += key;
  out += "\":" + std::to_string(number);
}

void put(std::string& out, const char* key, unsigned x, unsigned y, unsigned z) {
  out += '"';
  out += key;
  out += "\":[" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + "]";
}

void put(std::string& out, const char* key, const Place& place) {
  out += '"';
  out += key;
  out += "\":";
  if (place.module.empty()) {
    out += "null";
    return;
  }
  out += "{";
  put(out, "module", place.module);
  out += ",";
  put(out, "offset", place.offset);
  out += "}";
}

void put(std::string& out, const LaunchRecord& launch) {
  out += "{";
  put(out, "kernel", launch.kernel);
  out += ",";
  put(out, "file", launch.file);
  out += ",";
  put(out, "line", static_cast<uint64_t>(std::max(launch.line, 0)));
  out += ",";
  put(out, "grid", launch.grid.x, launch.grid.y, launch.grid.z);
  out += ",";
  put(out, "block", launch.block.x, launch.block.y, launch.block.z);
  out += ",";
  put(out, "shared_static", launch.static_shared);
  out += ",";
  put(out, "shared_dynamic", launch.dynamic_shared);
  out += ",";
  put(out, "owner", launch.library ? "library" : "own");
  out += ",";
  put(out, "flops", launch.library_flops);
  out += ",";
  put(out, "repeats", launch.repeats);
  out += launch.checked ? ",\"checked\":true" : ",\"checked\":false";
  out += launch.completed ? ",\"completed\":true" : ",\"completed\":false";
  out += launch.sampled ? ",\"sampled\":true" : ",\"sampled\":false";
  out += ",\"counts\":{";
  auto* values = reinterpret_cast<const uint64_t*>(&launch.counts);
  for (size_t i = 0; launch.checked && i < kCountFields; ++i) {
    if (i) out += ",";
    put(out, kCountNames[i], values[i]);
  }
  out += "}}";
}

void put(std::string& out, const Finding& finding) {
  out += "{";
  put(out, "code", finding.code);
  out += ",";
  put(out, "kernel", finding.kernel);
  out += ",";
  put(out, "block", finding.block.x, finding.block.y, finding.block.z);
  out += ",";
  put(out, "thread", finding.thread.x, finding.thread.y, finding.thread.z);
  out += ",";
  put(out, "text", finding.text);
  out += ",";
  put(out, "where", finding.where);
  if (!finding.has_other) {
    out += ",\"other\":null}";
    return;
  }
  out += ",\"other\":{";
  put(out, "block", finding.other_block.x, finding.other_block.y, finding.other_block.z);
  out += ",";
  put(out, "thread", finding.other_thread.x, finding.other_thread.y, finding.other_thread.z);
  out += ",";
  put(out, "access", finding.other.access);
  out += ",";
  put(out, "where", finding.other.place);
  out += "}}";
}

}  // namespace

Place place_of(uintptr_t return_address) {
  Place place;
  Dl_info info;
  if (return_address && dladdr(reinterpret_cast<void*>(return_address - 1), &info) && info.dli_fname) {
    place.module = info.dli_fname;
    place.offset = return_address - 1 - reinterpret_cast<uintptr_t>(info.dli_fbase);
  }
  return place;
}

bool is_known_finding(const char* code, uintptr_t return_address) {
  if (findings.size() >= kMaxFindings) return true;
  const char* kernel = running.config ? running.config->kernel : "";
  for (const Finding& known : findings) {
    if (return_address && known.return_address == return_address && known.code == code &&
        known.kernel == kernel) {
      return true;
    }
  }
  return false;
}

void add_finding(const char* code, const std::string& text, uintptr_t return_address,
                 const Party* other) {
  if (is_known_finding(code, return_address)) return;
  Finding finding;
  finding.code = code;
  finding.kernel = running.config ? running.config->kernel : "";
  for (const Finding& known : findings) {
    // Findings without a place are told apart by their texts.
    if (!return_address && known.code == code && known.kernel == finding.kernel &&
        known.text == text) {
      return;
    }
  }
  finding.text = text;
  finding.return_address = return_address;
  finding.where = place_of(return_address);
  if (running.config) {
    finding.block = unflatten(running.block, gridDim);
    finding.thread = block_state.indices[block_state.current];
  }
  if (other) {
    finding.has_other = true;
    finding.other = *other;
    finding.other_block = unflatten(other->block, gridDim);
    finding.other_thread = unflatten(other->thread, blockDim);
  }
  findings.push_back(std::move(finding));
}

bool LaunchRecord::same_launch(const LaunchRecord& other) const {
  auto same = [](const dim3& a, const dim3& b) { return a.x == b.x && a.y == b.y && a.z == b.z; };
  return kernel == other.kernel && file == other.file && line == other.line &&
         same(grid, other.grid) && same(block, other.block) && checked == other.checked &&
         dynamic_shared == other.dynamic_shared;
}

void set_error(int error) {
  if (error_state < kIllegalAddress) error_state = error;
}

int current_error() { return error_state; }

}  // namespace kgemu

using namespace kgemu;

#define KGEMU_PLACE reinterpret_cast<uintptr_t>(__builtin_return_address(0))

extern "C" {

int kgemu_get_error(int clear) {
  int error = error_state;
  if (clear && error < kIllegalAddress) error_state = kSuccess;
  return error;
}

void kgemu_set_error(int error) { set_error(error); }

void kgemu_finding(const char* code, const char* text) {
  add_finding(code, text, on_fiber() ? KGEMU_PLACE : 0);
}

void kgemu_abandon(int error) {
  if (!on_fiber()) __builtin_trap();
  abandon(error);
}

void kgemu_trap(void) {
  add_finding("trap", "the kernel executed __trap()", on_fiber() ? KGEMU_PLACE : 0);
  if (!on_fiber()) __builtin_trap();
  abandon(kLaunchFailure);
}

void kgemu_unsupported(const char* what) {
  add_finding("unsupported", std::string("the emulator does not support ") + what,
              on_fiber() ? KGEMU_PLACE : 0);
  if (on_fiber()) abandon(kLaunchFailure);
}

void kgemu_assert_fail(const char* expression, const char* file, unsigned line,
                       const char* function) {
  std::string text = std::string("assertion `") + expression + "` failed in " + function + ", " +
                     file + ":" + std::to_string(line);
  if (!on_fiber()) {
    fprintf(stderr, "%s\n", text.c_str());
    abort();
  }
  add_finding("assert", text, KGEMU_PLACE);
  abandon(kAssert);
}

int kgemu_printf(const char* format, ...) {
  char text[4096];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  if (length > 0 && printed.size() < kMaxPrinted) {
    size_t stored = std::min<size_t>(static_cast<size_t>(length), sizeof(text) - 1);
    printed.append(text, std::min(stored, kMaxPrinted - printed.size()));
  }
  return length;
}

long long kgemu_clock(void) { return clock_ticks += 16; }

int kgemu_in_kernel(void) { return on_fiber(); }

void kgemu_set_order(unsigned order) { run_order = order; }

void kgemu_set_access_budget(unsigned long long accesses) { access_budget = accesses; }

void kgemu_reset(void) {
  launch_records.clear();
  findings.clear();
  printed.clear();
  error_state = kSuccess;
  accesses_spent = 0;
  clock_ticks = 0;
}

const char* kgemu_report(void) {
  report = "{\"launches\":[";
  for (size_t i = 0; i < launch_records.size(); ++i) {
    if (i) report += ",";
    put(report, launch_records[i]);
  }
  report += "],\"findings\":[";
  for (size_t i = 0; i < findings.size(); ++i) {
    if (i) report += ",";
    put(report, findings[i]);
  }
  report += "],";
  put(report, "last_error", static_cast<uint64_t>(error_state));
  report += ",";
  put(report, "printf", printed);
  report += "}";
  return report.c_str();
}

}  // extern "C"
