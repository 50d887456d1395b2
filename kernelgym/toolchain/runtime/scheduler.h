// The state of the running block, shared by the scheduler and by what threads wait for.
#pragma once

#include "internal.h"

#pragma GCC visibility push(hidden)

namespace kgemu {

// One gathering of lanes: everybody in `mask` that has not exited arrives, then all read `lanes`.
// mask 0: of whoever is converged at `line` (__activemask).
struct Exchange {
  kgemu_lanes lanes;
  uint32_t mask;
  uint32_t arrived;
  uint32_t readers;  // lanes that may still read
  int line;
  uintptr_t place;   // return address of the first to come
  Exchange* next;
};

struct WarpState {
  uint32_t all, alive, runnable;
  uint32_t clock;            // exchanges completed
  Exchange* exchanges;       // not complete yet
  unsigned first_position;   // in BlockState::order
  unsigned lanes;
  bool started;
  bool divergent;
};

struct BlockState {
  unsigned threads, warp_count;
  unsigned alive, waiting;   // threads that have not exited; those at the block barrier
  unsigned current;          // the running thread
  int watched;               // Hot::mode for its threads
  int predicates, kind;      // of the barrier that gathers
  int result;                // of the last barrier
  uint3 indices[kMaxThreads];
  uint16_t order[kMaxThreads];
  uint16_t warp_order[kMaxWarps];
  WarpState warps[kMaxWarps];
  Fiber* fibers[kMaxThreads];        // of threads that are suspended
  Exchange* held[kMaxThreads];       // whose answer the thread may still read
  int barrier_line[kMaxThreads];     // of the source where it waits, 0: not at a barrier
  uintptr_t barrier_place[kMaxThreads];  // the same as a return address
  bool fenced[kMaxThreads];

  void start();
};
extern BlockState block_state;

// Suspends the running thread until somebody makes its lane runnable.
void wait_here();
bool is_checked();

// barrier.cpp
void reset_exchanges();  // before a grid
void open_barrier();
void report_deadlock();
void release_held_exchange(unsigned thread);
void open_complete_exchanges(WarpState& warp);
// Opens one exchange among converged lanes, when nothing else can go on. False: there is none.
bool open_converged_exchange(WarpState& warp);

// launch.cpp: fills the block's shared memory with what nobody has written
void poison_shared();

// scheduler.cpp
void run_grid(const kgemu_launch_config& config, void (*threads)(const void*),
              const void* arguments, LaunchRecord& record);

}  // namespace kgemu

#pragma GCC visibility pop
