// Runs a grid on one OS thread: blocks one after another, a block's threads as a plain loop until
// one has to wait, from then on as fibers.
//
// A warp runs until each of its lanes waits at a block barrier or has exited; then the next warp.
// When all have, the barrier opens. Nothing here depends on time, so runs repeat exactly.
#include "scheduler.h"

#include <algorithm>
#include <numeric>

namespace kgemu {

Running running;
unsigned run_order = 0;
BlockState block_state;

namespace {

void (*run_threads)(const void*);
const void* run_arguments;
bool abandoned;
bool checked;

// Threads of the current warp that are still to start: positions in block_state.order.
unsigned next_position, end_position;

void set_thread(unsigned thread) {
  threadIdx = block_state.indices[thread];
  block_state.current = thread;
  if (checked) {
    WarpState& warp = block_state.warps[thread / 32];
    hot.thread = thread;
    hot.warp_clock = warp.clock;
    hot.fenced = block_state.fenced[thread];
    hot.entries = trace.entries[thread % 32];
    hot.length = trace.length[thread % 32];
    hot.mode = block_state.watched;
  }
}

// What the checks must know when the running thread stops, for now or for good.
void stop_thread() {
  if (!checked) return;
  if (hot.mode == 2) settle_store();
  hot.mode = 0;
  unsigned thread = block_state.current;
  trace.length[thread % 32] = hot.length;
  block_state.fenced[thread] = hot.fenced;
}

}  // namespace

// An extent may be 0 in a launch that was refused.
uint3 unflatten(uint64_t linear, const dim3& extent) {
  uint64_t x = std::max(extent.x, 1u), y = std::max(extent.y, 1u);
  return {static_cast<unsigned>(linear % x), static_cast<unsigned>(linear / x % y),
          static_cast<unsigned>(linear / x / y)};
}

bool is_checked() { return checked; }
bool on_fiber() { return current_fiber != nullptr; }

void wait_here() {
  unsigned thread = block_state.current;
  stop_thread();
  current_fiber->thread = static_cast<int>(thread);
  block_state.fibers[thread] = current_fiber;
  leave_fiber();
  set_thread(thread);
}

void preempt() {
  unsigned thread = block_state.current;
  block_state.warps[thread / 32].runnable |= 1u << (thread % 32);
  wait_here();
}

void abandon(int error) {
  hot.mode = 0;
  abandoned = true;
  set_error(error);
  leave_fiber_forever();
}

namespace {

void finish_thread(unsigned thread) {
  stop_thread();
  WarpState& warp = block_state.warps[thread / 32];
  warp.alive &= ~(1u << (thread % 32));
  --block_state.alive;
  release_held_exchange(thread);
  open_complete_exchanges(warp);
}

}  // namespace

// A fiber starts threads as long as there are any, and is taken up again for the next warp.
[[noreturn]] void run_fiber() {
  for (;;) {
    run_threads(run_arguments);
    fiber_pool.free.push_back(current_fiber);
    leave_fiber();
  }
}

namespace {

void count_warp(WarpState& warp) {
  if (!checked) return;
  flush_trace(warp.all);
  warp.divergent |= running.divergent;
  running.divergent = false;
}

// Runs every lane of the warp that can run, again and again, until none can.
void run_warp(unsigned w) {
  WarpState& warp = block_state.warps[w];
  next_position = warp.first_position;
  end_position = warp.started ? next_position : warp.first_position + warp.lanes;
  warp.started = true;
  while (next_position < end_position && !abandoned) enter_fiber(fiber_pool.take());
  // Preempted lanes stay runnable; other warps get their turn before this one spins for ever.
  for (int turn = 0; turn < 64 && !abandoned; ++turn) {
    if (!warp.runnable && !open_converged_exchange(warp)) break;
    count_warp(warp);
    uint32_t runnable = warp.runnable;
    for (unsigned i = 0; i < warp.lanes && !abandoned; ++i) {
      unsigned thread = block_state.order[warp.first_position + i];
      uint32_t bit = 1u << (thread % 32);
      if (!(runnable & bit & warp.runnable)) continue;
      warp.runnable &= ~bit;
      set_thread(thread);
      enter_fiber(block_state.fibers[thread]);
    }
  }
  count_warp(warp);
}

void run_block() {
  block_state.start();
  unsigned warp_count = block_state.warp_count;
  for (;;) {
    bool runnable = false;
    for (unsigned i = 0; i < warp_count && !abandoned; ++i) {
      unsigned w = block_state.warp_order[i];
      WarpState& warp = block_state.warps[w];
      if (!warp.started || warp.runnable || warp.exchanges) run_warp(w);
    }
    if (abandoned) return;
    for (unsigned w = 0; w < warp_count; ++w) runnable |= block_state.warps[w].runnable != 0;
    if (runnable) continue;
    if (block_state.alive == 0) return;
    if (block_state.waiting != block_state.alive) {
      report_deadlock();
      abandoned = true;
      set_error(kLaunchFailure);
      return;
    }
    open_barrier();
  }
}

// Which blocks are watched when the budget does not allow all: the first, the last and some evenly
// spaced ones between them. The others run unwatched, so that outputs are complete.
struct Sample {
  uint64_t blocks, inner;  // all blocks; how many of the inner ones are watched
  bool all = true;

  bool takes(uint64_t block) const {
    if (all || block == 0 || block == blocks - 1) return true;
    // The inner blocks 1 .. blocks-2 in `inner` equal parts: the first of each part.
    uint64_t i = block - 1, n = blocks - 2;
    auto part = [&](uint64_t k) { return static_cast<uint64_t>((__int128)k * inner / n); };
    return i == 0 || part(i) != part(i - 1);
  }
};

// A permutation of 0 .. n-1 without a table: i -> (i * stride + start) mod n.
struct Permutation {
  uint64_t n, stride = 1, start = 0;
  Permutation(uint64_t n_, unsigned order) : n(n_) {
    if (order == 1) {
      stride = start = n - 1;
    } else if (order > 1) {
      uint64_t x = order * 0x9E3779B97F4A7C15ull;
      start = (x >> 20) % n;
      for (stride = (x >> 33) % n | 1; std::gcd(stride, n) != 1;) stride += 2;
      stride %= n;
    }
  }
  uint64_t operator()(uint64_t i) const {
    return static_cast<uint64_t>(((unsigned __int128)i * stride + start) % n);
  }
};

void order_threads(unsigned threads) {
  unsigned warps = (threads + 31) / 32, position = 0;
  Permutation warp_permutation(warps, run_order);
  for (unsigned i = 0; i < warps; ++i) {
    unsigned w = static_cast<unsigned>(warp_permutation(i));
    unsigned lanes = std::min(32u, threads - w * 32);
    block_state.warp_order[i] = w;
    block_state.warps[w].first_position = position;
    block_state.warps[w].lanes = lanes;
    Permutation lane_permutation(lanes, run_order);
    for (unsigned k = 0; k < lanes; ++k) {
      block_state.order[position++] = w * 32 + static_cast<unsigned>(lane_permutation(k));
    }
  }
}

}  // namespace

void run_grid(const kgemu_launch_config& config, void (*threads)(const void*),
              const void* arguments, LaunchRecord& record) {
  unsigned thread_count = config.block.x * config.block.y * config.block.z;
  uint64_t blocks = uint64_t{config.grid.x} * config.grid.y * config.grid.z;
  run_threads = threads;
  run_arguments = arguments;
  abandoned = false;
  checked = config.checked;
  running.config = &config;
  gridDim = config.grid;
  blockDim = config.block;
  block_state.threads = thread_count;
  block_state.warp_count = (thread_count + 31) / 32;
  for (unsigned t = 0; t < thread_count; ++t) {
    block_state.indices[t] = unflatten(t, config.block);
  }
  order_threads(thread_count);
  reset_exchanges();

  Sample sample{blocks, 0};
  Permutation permutation(blocks, run_order);
  Counts edges, inner;
  uint64_t watched_inner = 0;
  for (uint64_t i = 0; i < blocks && !abandoned; ++i) {
    uint64_t block = permutation(i);
    blockIdx = unflatten(block, config.grid);
    running.block = block;
    running.counts = Counts();
    bool watched = checked && (i == 0 || sample.takes(block));
    block_state.watched = watched;
    if (watched) {
      start_shadow_block(block);
      poison_shared();
    }
    run_block();
    if (!watched) continue;
    Counts& counts = running.counts;
    counts.blocks = 1;
    counts.threads = thread_count;
    counts.warps = block_state.warp_count;
    for (unsigned w = 0; w < block_state.warp_count; ++w) {
      counts.divergent_warps += block_state.warps[w].divergent;
    }
    accesses_spent += counts.accesses;
    bool edge = block == 0 || block == blocks - 1;
    watched_inner += !edge;
    (edge ? edges : inner).add(counts, 1.0);
    if (i == 0 && blocks > 3) {
      uint64_t left = access_budget > accesses_spent ? access_budget - accesses_spent : 0;
      uint64_t affordable = left / std::max<uint64_t>(counts.accesses, 1);
      if (affordable < blocks - 1) {
        sample.all = false;
        sample.inner = std::max<uint64_t>(1, std::min(affordable, blocks - 2));
      }
    }
  }
  // Anything that is still suspended belongs to an abandoned kernel.
  if (abandoned) fiber_pool.recycle_all();
  running.config = nullptr;
  record.completed = !abandoned;
  record.sampled = !sample.all;
  record.counts.add(edges, 1.0);
  double factor = 1.0;
  if (!sample.all && watched_inner && !abandoned) {
    factor = static_cast<double>(blocks - 2) / static_cast<double>(watched_inner);
  }
  record.counts.add(inner, factor);
}

}  // namespace kgemu

using namespace kgemu;

extern "C" int kgemu_next_thread(void) {
  Fiber* fiber = current_fiber;
  if (fiber->thread >= 0) finish_thread(block_state.current);
  if (next_position == end_position) {
    fiber->thread = -1;
    return 0;
  }
  unsigned thread = block_state.order[next_position++];
  fiber->thread = static_cast<int>(thread);
  set_thread(thread);
  return 1;
}
