// Fibers: stacks with guard pages, the context switch, and faults turned into findings.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "internal.h"

#if defined(__x86_64__)
// Callee-saved registers of the System V ABI. MXCSR and the x87 control word are left alone: kernels
// do not change them.
asm(R"(
.text
.p2align 4
.hidden kgemu_switch
.globl kgemu_switch
.type kgemu_switch, @function
kgemu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size kgemu_switch, .-kgemu_switch
)");
constexpr size_t kReturnWord = 6;   // above the saved registers
constexpr size_t kFrameWords = 8;   // keeps rsp + 8 a multiple of 16 at the function's entry
#elif defined(__aarch64__)
asm(R"(
.text
.p2align 4
.hidden kgemu_switch
.globl kgemu_switch
.type kgemu_switch, %function
kgemu_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size kgemu_switch, .-kgemu_switch
)");
constexpr size_t kReturnWord = 11;  // x30
constexpr size_t kFrameWords = 20;
#else
#error "the emulator knows x86-64 and aarch64"
#endif

extern "C" void kgemu_switch(void** save, void* load);

namespace kgemu {

FiberPool fiber_pool;
Fiber* current_fiber = nullptr;

namespace {

constexpr size_t kStackBytes = 256 * 1024;
constexpr size_t kGuardBytes = 64 * 1024;
constexpr size_t kArenaBytes = 2 * 1024 * 1024;
constexpr size_t kSlotBytes = kStackBytes + kGuardBytes;
// One fiber a thread, and one that starts the next thread.
constexpr size_t kMaxFibers = kMaxThreads + 1;

void* scheduler_stack_pointer;
char signal_stack[64 * 1024];
alignas(16) char exit_stack[32 * 1024];

[[noreturn]] void die(const char* what) {
  fprintf(stderr, "kgemu: %s: errno %d\n", what, errno);
  abort();
}

}  // namespace

// Defined in scheduler.cpp: what a fiber does, for ever.
[[noreturn]] void run_fiber();

namespace {

void prepare(Fiber* fiber) {
  // Tops are staggered: stacks at equal offsets would compete for the same cache sets.
  uintptr_t top = reinterpret_cast<uintptr_t>(fiber->stack) + kStackBytes - (fiber->index % 61) * 576;
  auto* frame = reinterpret_cast<void**>((top & ~uintptr_t{15}) - 256);
  for (size_t i = 0; i < kFrameWords; ++i) frame[i] = nullptr;
  frame[kReturnWord] = reinterpret_cast<void*>(&run_fiber);
  fiber->stack_pointer = frame;
  fiber->thread = -1;
}

}  // namespace

void FiberPool::reserve() {
  if (base) return;
  bytes = kArenaBytes + kMaxFibers * kSlotBytes;
  void* memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) die("cannot reserve stacks");
  base = static_cast<char*>(memory);
  if (mprotect(base, kArenaBytes, PROT_READ | PROT_WRITE)) die("cannot make the arena");
}

Fiber* FiberPool::take() {
  if (free.empty()) {
    auto fiber = std::make_unique<Fiber>();
    fiber->index = fibers.size();
    fiber->stack = base + kArenaBytes + fiber->index * kSlotBytes + kGuardBytes;
    if (mprotect(fiber->stack, kStackBytes, PROT_READ | PROT_WRITE)) die("cannot make a stack");
    prepare(fiber.get());
    free.push_back(fiber.get());
    fibers.push_back(std::move(fiber));
  }
  Fiber* fiber = free.back();
  free.pop_back();
  return fiber;
}

void FiberPool::recycle_all() {
  free.clear();
  for (auto it = fibers.rbegin(); it != fibers.rend(); ++it) {
    prepare(it->get());
    free.push_back(it->get());
  }
}

bool FiberPool::is_guard(const void* address) const {
  size_t offset = static_cast<const char*>(address) - base;
  if (!base || offset < kArenaBytes || offset >= bytes) return false;
  return (offset - kArenaBytes) % kSlotBytes < kGuardBytes;
}

void enter_fiber(Fiber* fiber) {
  current_fiber = fiber;
  kgemu_switch(&scheduler_stack_pointer, fiber->stack_pointer);
}

void leave_fiber() {
  Fiber* fiber = current_fiber;
  current_fiber = nullptr;
  kgemu_switch(&fiber->stack_pointer, scheduler_stack_pointer);
}

void leave_fiber_forever() {
  void* unused;
  current_fiber = nullptr;
  kgemu_switch(&unused, scheduler_stack_pointer);
  __builtin_unreachable();
}

namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
struct sigaction previous_actions[4];
stack_t previous_stack;

struct Fault {
  int signal;
  uintptr_t address, pc;
} fault;

// Runs on exit_stack, outside of the signal handler.
[[noreturn]] void report_fault() {
  hot.mode = 0;
  const auto* address = reinterpret_cast<const void*>(fault.address);
  // Findings hold return addresses, which lie after the instruction.
  uintptr_t place = fault.pc + 1;
  switch (fault.signal) {
    case SIGFPE:
      add_finding("arithmetic.division_by_zero", "integer division by zero (or its overflow)", place);
      abandon(kLaunchFailure);
    case SIGILL:
      add_finding("trap", "the kernel executed a trap", place);
      abandon(kIllegalInstruction);
    default:
      if (fiber_pool.is_guard(address)) {
        add_finding("memory.stack_overflow",
                    "the thread's local memory (stack) exceeds " +
                        std::to_string(kStackBytes / 1024) + " KiB: endless recursion, or an array "
                        "too large for a thread",
                    place);
        abandon(kStackError);
      }
      add_finding("memory.out_of_bounds",
                  "access to " + describe_address(fault.address), place);
      abandon(kIllegalAddress);
  }
}

void handle_fault(int signal, siginfo_t* info, void* context) {
  if (!current_fiber) {
    // Not a kernel's doing: let it happen again under whoever handled it before us.
    for (int i = 0; i < 4; ++i) sigaction(kSignals[i], &previous_actions[i], nullptr);
    return;
  }
  auto* machine = &static_cast<ucontext_t*>(context)->uc_mcontext;
  auto stack = reinterpret_cast<uintptr_t>(exit_stack + sizeof(exit_stack)) - 64;
  auto target = reinterpret_cast<uintptr_t>(&report_fault);
#if defined(__x86_64__)
  fault = {signal, reinterpret_cast<uintptr_t>(info->si_addr),
           static_cast<uintptr_t>(machine->gregs[REG_RIP])};
  machine->gregs[REG_RSP] = static_cast<greg_t>(stack - 8);
  machine->gregs[REG_RIP] = static_cast<greg_t>(target);
  machine->gregs[REG_EFL] &= ~0x400;  // direction flag
#else
  fault = {signal, reinterpret_cast<uintptr_t>(info->si_addr), machine->pc};
  machine->sp = stack;
  machine->pc = target;
#endif
}

}  // namespace

FaultGuard::FaultGuard() {
  stack_t stack = {};
  stack.ss_sp = signal_stack;
  stack.ss_size = sizeof(signal_stack);
  sigaltstack(&stack, &previous_stack);
  struct sigaction action = {};
  action.sa_sigaction = handle_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < 4; ++i) sigaction(kSignals[i], &action, &previous_actions[i]);
}

FaultGuard::~FaultGuard() {
  for (int i = 0; i < 4; ++i) sigaction(kSignals[i], &previous_actions[i], nullptr);
  sigaltstack(&previous_stack, nullptr);
}

}  // namespace kgemu
