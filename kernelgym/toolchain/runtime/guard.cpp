// Device memory out of the host's reach, as on a GPU: while the host is watched and nothing of the
// device runs, the pages of tensors cannot be touched, by whatever code. Where a tensor shares a
// page with something else, that page stays open.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "internal.h"

namespace kgemu {
namespace {

struct Pages {
  uintptr_t low, high;
  bool contains(uintptr_t address) const { return address - low < high - low; }
};

// What the signal handler reads is written while nothing is closed.
std::vector<Pages> closed;
bool armed, broken;
unsigned at_work;
uintptr_t touched;
bool nothing_done;
struct sigaction previous_action;

// The pages that a region has to itself.
Pages own_pages(uintptr_t low, size_t bytes) {
  static const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  uintptr_t first = (low + page - 1) & ~(page - 1);
  return {first, std::max(first, (low + bytes) & ~(page - 1))};
}

void protect(const Pages& pages, int rights) {
  mprotect(reinterpret_cast<void*>(pages.low), pages.high - pages.low, rights);
}

void close() {
  if (!armed || broken || at_work) return;
  for_each_device_region([](uintptr_t low, size_t bytes) {
    Pages pages = own_pages(low, bytes);
    if (pages.low < pages.high) closed.push_back(pages);
  });
  for (const Pages& pages : closed) protect(pages, PROT_NONE);
}

void open() {
  for (const Pages& pages : closed) protect(pages, PROT_READ | PROT_WRITE);
  closed.clear();
}

void handle_touch(int signal, siginfo_t* info, void*) {
  auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const Pages& pages : closed) {
    if (!pages.contains(address)) continue;
    touched = address;
    broken = true;
    // The access happens again, and now succeeds: the candidate gets a finding, not a crash.
    for (const Pages& each : closed) protect(each, PROT_READ | PROT_WRITE);
    return;
  }
  sigaction(signal, &previous_action, nullptr);
}

}  // namespace

void guard_device_memory(bool wanted) {
  if (wanted == armed) return;
  if (wanted) {
    struct sigaction action = {};
    action.sa_sigaction = handle_touch;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &previous_action);
    armed = true;
    broken = false;
    touched = 0;
    close();
    return;
  }
  open();
  armed = false;
  sigaction(SIGSEGV, &previous_action, nullptr);
  if (broken) {
    add_finding("memory.host_access",
                "host code touched device memory outside of kernels: " + describe_address(touched), 0);
  }
}

bool kernels_do_nothing() { return nothing_done; }

void release_pages(uintptr_t low, size_t bytes) {
  Pages gone = own_pages(low, bytes);
  if (closed.empty() || gone.low >= gone.high) return;
  protect(gone, PROT_READ | PROT_WRITE);
  closed.erase(std::remove_if(closed.begin(), closed.end(),
                              [&](const Pages& pages) {
                                return pages.low >= gone.low && pages.high <= gone.high;
                              }),
               closed.end());
}

DeviceWork::DeviceWork() {
  if (at_work++ == 0) open();
}

DeviceWork::~DeviceWork() {
  if (--at_work == 0) close();
}

}  // namespace kgemu

// Tells a decoy: the output of a candidate whose kernels matter changes when they do nothing.
extern "C" void kgemu_do_nothing(int wanted) { kgemu::nothing_done = wanted != 0; }

extern "C" void kgemu_guard_device(int wanted) { kgemu::guard_device_memory(wanted != 0); }

extern "C" void kgemu_begin_device_work(void) {
  if (kgemu::at_work++ == 0) kgemu::open();
}

extern "C" void kgemu_end_device_work(void) {
  if (--kgemu::at_work == 0) kgemu::close();
}
