// C interface of the emulator's runtime library (libkgemu.so): what the torch stand-in and, through
// ctypes, the candidate's process call. One runtime a process, shared by all extension modules.
#pragma once
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Memory with guard zones on both sides. `initialised` = 0: filled with a poison pattern (NaNs), and
// a read before a write is reported in checked runs. `label` names it in reports ("torch::empty").
void* kgemu_alloc(size_t bytes, int initialised, const char* label);
void kgemu_free(void* pointer);

// Memory that somebody else owns (input tensors, weights): known to the checks, not guarded.
void kgemu_register(const void* pointer, size_t bytes, int initialised, const char* label);
void kgemu_unregister(const void* pointer);
// Marks a range as written (a torch operator filled it).
void kgemu_mark_initialised(const void* pointer, size_t bytes);
// Whether the pointer lies in memory of either kind.
int kgemu_is_device_pointer(const void* pointer);

// Order in which blocks, and threads up to a barrier, run: 0 forward, 1 reverse, n > 1 permuted by
// that seed.
void kgemu_set_order(unsigned order);

// Limit on instrumented accesses; past it, only a sample of the blocks of each launch is watched, and
// counts are scaled up. The others run unwatched, so that outputs are complete.
void kgemu_set_access_budget(unsigned long long accesses);

// Whether checked host code that touches device memory is a finding (memory.host_access). Off at first.
void kgemu_watch_host(int watched);

// Forgets launches and findings so far.
void kgemu_reset(void);

// Everything since the last reset as JSON (runtime/report.cpp has the schema); valid until the next call.
const char* kgemu_report(void);

#ifdef __cplusplus
}
#endif
