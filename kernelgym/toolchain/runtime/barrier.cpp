// What threads wait for: the block's barrier, and exchanges among the lanes of a warp.
#include <cstring>

#include "scheduler.h"

namespace kgemu {

void BlockState::start() {
  alive = threads;
  waiting = 0;
  result = 0;
  for (unsigned w = 0; w < warp_count; ++w) {
    WarpState& warp = warps[w];
    warp.all = warp.lanes == 32 ? 0xffffffffu : (1u << warp.lanes) - 1;
    warp.alive = warp.all;
    warp.runnable = 0;
    warp.clock = 0;
    warp.exchanges = nullptr;
    warp.started = false;
    warp.divergent = false;
  }
  std::memset(held, 0, threads * sizeof(held[0]));
  std::memset(barrier_line, 0, threads * sizeof(barrier_line[0]));
  std::memset(fenced, 0, threads * sizeof(fenced[0]));
}

namespace {

// Exchanges live where kernels may read: at most one per waiting and one per holding thread.
Exchange* free_exchanges;

void fill_pool() {
  auto* first = static_cast<Exchange*>(fiber_pool.arena());
  free_exchanges = nullptr;
  for (unsigned i = 2 * kMaxThreads; i-- > 0;) {
    first[i].next = free_exchanges;
    free_exchanges = &first[i];
  }
}

Exchange* new_exchange(WarpState& warp, uint32_t mask, int line, uintptr_t place) {
  Exchange* exchange = free_exchanges;
  free_exchanges = exchange->next;
  std::memset(exchange, 0, sizeof(*exchange));
  exchange->mask = mask;
  exchange->line = line;
  exchange->place = place;
  exchange->next = warp.exchanges;
  warp.exchanges = exchange;
  return exchange;
}

void unlink(WarpState& warp, Exchange* exchange) {
  Exchange** link = &warp.exchanges;
  while (*link != exchange) link = &(*link)->next;
  *link = exchange->next;
}

// Every lane that arrived may go on, and reads the answer until its next exchange.
void complete(WarpState& warp, Exchange* exchange) {
  unlink(warp, exchange);
  exchange->lanes.present = exchange->arrived;
  exchange->readers = exchange->arrived;
  warp.runnable |= exchange->arrived;
  ++warp.clock;
  ++running.counts.warp_exchanges;
}

bool is_complete(const WarpState& warp, const Exchange* exchange) {
  return exchange->mask && !(exchange->mask & warp.alive & ~exchange->arrived);
}

Exchange* arrive(WarpState& warp, uint32_t mask, uint64_t value, int line,
                 uintptr_t place) {
  unsigned thread = block_state.current, lane = thread % 32;
  release_held_exchange(thread);
  Exchange* exchange = warp.exchanges;
  while (exchange && (exchange->mask != mask || (!mask && exchange->line != line))) {
    exchange = exchange->next;
  }
  if (!exchange) exchange = new_exchange(warp, mask, line, place);
  exchange->arrived |= 1u << lane;
  exchange->lanes.slot[lane] = value;
  block_state.held[thread] = exchange;
  return exchange;
}

}  // namespace

void reset_exchanges() { fill_pool(); }

void release_held_exchange(unsigned thread) {
  Exchange* exchange = block_state.held[thread];
  if (!exchange) return;
  block_state.held[thread] = nullptr;
  exchange->readers &= ~(1u << (thread % 32));
  if (!exchange->readers) {
    exchange->next = free_exchanges;
    free_exchanges = exchange;
  }
}

void open_complete_exchanges(WarpState& warp) {
  for (Exchange* exchange = warp.exchanges; exchange;) {
    Exchange* next = exchange->next;
    if (is_complete(warp, exchange)) complete(warp, exchange);
    exchange = next;
  }
}

bool open_converged_exchange(WarpState& warp) {
  for (Exchange* exchange = warp.exchanges; exchange; exchange = exchange->next) {
    if (exchange->mask) continue;
    complete(warp, exchange);
    return true;
  }
  return false;
}

namespace {

Party waiting_thread(int thread) {
  Party party;
  party.block = running.block;
  party.thread = static_cast<unsigned>(thread);
  party.access = "barrier";
  party.place = place_of(block_state.barrier_place[thread]);
  return party;
}

void report_divergence(int one, int other) {
  block_state.current = static_cast<unsigned>(other);
  Party party = waiting_thread(one);
  add_finding("barrier.divergent", "lanes of one warp wait at different __syncthreads()",
              block_state.barrier_place[other], &party);
}

}  // namespace

void open_barrier() {
  switch (block_state.kind) {
    case KGEMU_BARRIER_AND:
      block_state.result = block_state.predicates == static_cast<int>(block_state.waiting);
      break;
    case KGEMU_BARRIER_OR:
      block_state.result = block_state.predicates != 0;
      break;
    default:
      block_state.result = block_state.predicates;
  }
  for (unsigned w = 0; w < block_state.warp_count; ++w) {
    WarpState& warp = block_state.warps[w];
    warp.runnable = warp.alive;
    int first = -1;
    for (unsigned lane = 0; lane < warp.lanes; ++lane) {
      if (!(warp.alive >> lane & 1)) continue;
      int thread = static_cast<int>(w * 32 + lane);
      if (first < 0) first = thread;
      if (block_state.barrier_line[thread] != block_state.barrier_line[first]) {
        report_divergence(first, thread);
      }
    }
  }
  std::memset(block_state.barrier_line, 0, block_state.threads * sizeof(int));
  block_state.waiting = 0;
  block_state.predicates = 0;
  if (block_state.watched) {
    ++running.counts.barriers;
    ++hot.epoch;
  }
}

void report_deadlock() {
  const Exchange* stuck = nullptr;
  unsigned stuck_warp = 0, in_exchanges = 0, at_barrier = 0;
  int at_barrier_first = -1;
  for (unsigned w = 0; w < block_state.warp_count; ++w) {
    const WarpState& warp = block_state.warps[w];
    for (const Exchange* exchange = warp.exchanges; exchange; exchange = exchange->next) {
      in_exchanges += static_cast<unsigned>(__builtin_popcount(exchange->arrived));
      if (!stuck) stuck_warp = w;
      if (!stuck) stuck = exchange;
    }
  }
  for (unsigned t = 0; t < block_state.threads; ++t) {
    if (!block_state.barrier_line[t]) continue;
    if (!at_barrier++) at_barrier_first = static_cast<int>(t);
  }
  block_state.current = stuck_warp * 32 + static_cast<unsigned>(__builtin_ctz(stuck->arrived));
  char text[200];
  snprintf(text, sizeof(text),
           "%u threads wait for ever in a warp operation: lanes 0x%08x of its mask 0x%08x never "
           "arrive",
           in_exchanges,
           stuck->mask & block_state.warps[stuck_warp].alive & ~stuck->arrived, stuck->mask);
  if (!at_barrier) {
    add_finding("barrier.deadlock", text, stuck->place);
    return;
  }
  Party party = waiting_thread(at_barrier_first);
  add_finding("barrier.deadlock",
              text + (", while " + std::to_string(at_barrier)) + " threads wait at __syncthreads()",
              stuck->place, &party);
}

}  // namespace kgemu

using namespace kgemu;

#define KGEMU_PLACE reinterpret_cast<uintptr_t>(__builtin_return_address(0))

extern "C" int kgemu_barrier(int kind, int predicate, int line) {
  if (!on_fiber()) return predicate;
  unsigned thread = block_state.current;
  block_state.barrier_line[thread] = line > 0 ? line : 1;
  block_state.barrier_place[thread] = KGEMU_PLACE;
  if (block_state.waiting++ == 0) {
    block_state.kind = kind;
    block_state.predicates = 0;
  }
  block_state.predicates += predicate != 0;
  wait_here();
  return block_state.result;
}

namespace {

const kgemu_lanes* exchange_lanes(uint32_t mask, uint64_t value, int line, uintptr_t place) {
  static kgemu_lanes alone;
  if (!on_fiber()) return &alone;
  unsigned thread = block_state.current, lane = thread % 32;
  WarpState& warp = block_state.warps[thread / 32];
  uint32_t own = 1u << lane;
  if (!(mask & own)) {
    char text[96];
    snprintf(text, sizeof(text), "the calling lane %u is not in the mask 0x%08x", lane, mask);
    add_finding("warp.mask", text, place);
    mask |= own;
  }
  Exchange* exchange = arrive(warp, mask, value, line, place);
  if (is_complete(warp, exchange)) {
    complete(warp, exchange);
    // Unwatched, the last to come goes on at once; watched, lanes stay in step.
    if (!is_checked()) {
      warp.runnable &= ~own;
      return &exchange->lanes;
    }
  }
  wait_here();
  return &exchange->lanes;
}

}  // namespace

extern "C" const kgemu_lanes* kgemu_warp_exchange(uint32_t mask, uint64_t value, int line) {
  return exchange_lanes(mask, value, line, KGEMU_PLACE);
}

extern "C" void kgemu_warp_sync(uint32_t mask, int line) {
  exchange_lanes(mask, 0, line, KGEMU_PLACE);
}

extern "C" uint32_t kgemu_active_mask(int line) {
  if (!on_fiber()) return 1;
  Exchange* exchange =
      arrive(block_state.warps[block_state.current / 32], 0, 0, line, KGEMU_PLACE);
  wait_here();
  return exchange->lanes.present;
}

extern "C" int kgemu_lane(void) { return static_cast<int>(block_state.current % 32); }
