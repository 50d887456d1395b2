"""Every reason code a verdict can carry: what it means, and what to do about it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from kernelgym.judge.reason_examples import EXAMPLES
from kernelgym.judge.verdict import Outcome

__all__ = ["REASONS", "Reason", "table"]


@dataclasses.dataclass(frozen=True)
class Reason:
    """One reason code.

    Attributes:
        code: Stable code.
        outcome: The outcome that it comes with.
        meaning: What was seen.
        remedy: What an honest author does about it.
    """

    code: str
    outcome: Outcome
    meaning: str
    remedy: str


_TABLE = (
    Reason(
        "rule.torch_compute",
        Outcome.REJECTED,
        "forward calls a torch operator that computes (torch.relu, x @ y, an nn module, …).",
        "Do that work in a CUDA kernel of your own; forward may create tensors, take views and "
        "call what you built.",
    ),
    Reason(
        "rule.no_own_kernel",
        Outcome.REJECTED,
        "forward launched no kernel of yours and made no library call from your C++.",
        "Launch your kernel in forward.",
    ),
    Reason(
        "rule.host_compute",
        Outcome.REJECTED,
        "forward took a tensor's values to the host (numpy, tolist, item, cpu, …).",
        "Compute on the device; take to the host nothing but shapes and other metadata.",
    ),
    Reason(
        "rule.hidden_compute",
        Outcome.REJECTED,
        "Torch computed in forward where its operators are not recorded: in another thread, with "
        "dispatch modes off, from native code; or a kernel ran that "
        "computes and is neither the candidate's nor a library's that its C++ calls.",
        "Compute in kernels of your own, on the calling thread.",
    ),
    Reason(
        "rule.decoy",
        Outcome.REJECTED,
        "The output is right also when the candidate's kernels do nothing: they are for show.",
        "Let your kernels make the output.",
    ),
    Reason(
        "rule.raw_memory",
        Outcome.REJECTED,
        "Python reached for memory by its address (ctypes, the garbage collector's lists).",
        "Pass tensors to your extension; pointers belong in its C++.",
    ),
    Reason(
        "rule.native_call",
        Outcome.REJECTED,
        "The built library calls what no kernel needs (mprotect, dlsym, pthread_create, …).",
        "Leave out memory protection, dynamic loading, threads, processes and signals.",
    ),
    Reason(
        "rule.threads",
        Outcome.REJECTED,
        "The candidate started a thread.",
        "Work on the calling thread; concurrency belongs on the GPU.",
    ),
    Reason(
        "rule.instrumentation",
        Outcome.REJECTED,
        "The source interferes with the emulator's instrumentation, or launches outside of it.",
        "Leave out no_sanitize attributes and the emulator's own functions.",
    ),
    Reason(
        "workspace.no_entry",
        Outcome.REJECTED,
        "The workspace has no model_new.py.",
        "Write model_new.py; it must define a class ModelNew.",
    ),
    Reason(
        "build.compile",
        Outcome.COMPILE_ERROR,
        "The compiler refused the source.",
        "Fix the first diagnostic first; later ones often follow from it.",
    ),
    Reason(
        "build.timeout",
        Outcome.TIMEOUT,
        "The compiler did not finish in time.",
        "Look for deep template recursion, huge unrolled loops or huge arrays.",
    ),
    Reason(
        "emulator.unsupported",
        Outcome.UNSUPPORTED,
        "The source uses something that only a real GPU can run.",
        "Write it in plain CUDA C++, or judge it on a GPU.",
    ),
    Reason(
        "import.error",
        Outcome.RUNTIME_ERROR,
        "Importing model_new.py raised an exception.",
        "See the traceback.",
    ),
    Reason(
        "construct.error",
        Outcome.RUNTIME_ERROR,
        "ModelNew(...) raised an exception.",
        "Take the same constructor arguments as Model.",
    ),
    Reason(
        "weights.keys",
        Outcome.INCORRECT,
        "ModelNew's state_dict lacks keys of the reference's, or has them in another shape.",
        "Name parameters and buffers as the reference does; hold weights in the same nn modules.",
    ),
    Reason(
        "run.error",
        Outcome.RUNTIME_ERROR,
        "forward raised an exception.",
        "See the traceback.",
    ),
    Reason(
        "run.died",
        Outcome.RUNTIME_ERROR,
        "The process ended during the judgement (segmentation fault, exit, out of memory).",
        "Check bounds in kernels and host code; do not exit the process.",
    ),
    Reason(
        "run.timeout",
        Outcome.TIMEOUT,
        "The candidate did not finish in time.",
        "Look for a loop that never ends, or a barrier that some threads never reach.",
    ),
    Reason(
        "memory.out_of_bounds",
        Outcome.RUNTIME_ERROR,
        "A kernel touched memory outside every tensor, or outside its shared memory.",
        "Guard the last block: `if (i < n)`; check strides and shared array sizes.",
    ),
    Reason(
        "memory.misaligned",
        Outcome.RUNTIME_ERROR,
        "A vector access was not aligned to its size.",
        "Check the alignment before reinterpreting as float4, or handle the head apart.",
    ),
    Reason(
        "memory.uninitialised",
        Outcome.INCORRECT,
        "A kernel read memory that nothing had written.",
        "Initialise accumulators and shared memory (torch::zeros, or a store before the barrier).",
    ),
    Reason(
        "memory.stack_overflow",
        Outcome.RUNTIME_ERROR,
        "A kernel's thread used more local memory than there is.",
        "Make local arrays smaller, or bound the recursion.",
    ),
    Reason(
        "race.shared",
        Outcome.INCORRECT,
        "Two threads touched one place in shared memory with no barrier in between.",
        "Put __syncthreads() between writing and reading, and before overwriting.",
    ),
    Reason(
        "race.global",
        Outcome.INCORRECT,
        "Two threads touched one place in global memory without synchronising.",
        "Use atomics, or give each place one writer.",
    ),
    Reason(
        "barrier.deadlock",
        Outcome.RUNTIME_ERROR,
        "Some threads wait at a barrier that others never reach.",
        "Let every thread of the block reach the same __syncthreads().",
    ),
    Reason(
        "barrier.divergent",
        Outcome.RUNTIME_ERROR,
        "Threads of one warp wait at different barriers.",
        "Move the barrier out of the branch.",
    ),
    Reason(
        "warp.mask",
        Outcome.RUNTIME_ERROR,
        "A warp-wide operation was called with a mask that does not fit the lanes that came.",
        "Name every lane that takes part, and only those; keep the call out of branches.",
    ),
    Reason(
        "launch.configuration",
        Outcome.RUNTIME_ERROR,
        "A launch was refused: an empty grid, too many blocks, or more than 1024 threads a block.",
        "Compute grid and block from the sizes; check cudaGetLastError after the launch.",
    ),
    Reason(
        "launch.shared_memory",
        Outcome.RUNTIME_ERROR,
        "A launch was refused: more shared memory than a block may have.",
        "48 KB without more ado; beyond, cudaFuncSetAttribute raises the dynamic limit to 227 KB.",
    ),
    Reason(
        "memory.invalid_free",
        Outcome.RUNTIME_ERROR,
        "cudaFree was given an address that cudaMalloc had not returned.",
        "Free what you allocated, once.",
    ),
    Reason(
        "memory.host_access",
        Outcome.RUNTIME_ERROR,
        "C++ code of the host read or wrote a tensor's memory, which on a GPU it cannot reach.",
        "Do the work in a kernel; copy with cudaMemcpy what the host has to know.",
    ),
    Reason(
        "memory.host_copy",
        Outcome.REJECTED,
        "C++ code of the host copied a tensor's values to the host, more than 4 KB in one forward.",
        "Keep values on the device and compute there.",
    ),
    Reason(
        "arithmetic.division_by_zero",
        Outcome.RUNTIME_ERROR,
        "A kernel divided a whole number by zero.",
        "Guard the divisor.",
    ),
    Reason(
        "assert",
        Outcome.RUNTIME_ERROR,
        "An assert in a kernel failed.",
        "See the message.",
    ),
    Reason(
        "trap",
        Outcome.RUNTIME_ERROR,
        "A kernel called __trap().",
        "See where.",
    ),
    Reason(
        "kernel.error",
        Outcome.RUNTIME_ERROR,
        "A kernel failed in another way.",
        "See the message.",
    ),
    Reason(
        "check.count",
        Outcome.INCORRECT,
        "forward returned another number of tensors, or something that is not a plain tensor.",
        "Return what the reference returns.",
    ),
    Reason(
        "check.shape",
        Outcome.INCORRECT,
        "An output has another shape.",
        "Return the reference's shape.",
    ),
    Reason(
        "check.dtype",
        Outcome.INCORRECT,
        "An output has another dtype.",
        "Return the reference's dtype.",
    ),
    Reason(
        "check.values",
        Outcome.INCORRECT,
        "Values differ by more than the error budget.",
        "See the worst element; compare with the reference step by step.",
    ),
    Reason(
        "check.tail",
        Outcome.INCORRECT,
        "Values differ only at one end of, or at regular places along, one axis.",
        "Handle sizes that are not multiples of the block or the vector width.",
    ),
    Reason(
        "check.constant",
        Outcome.INCORRECT,
        "Every element of the output is the same.",
        "Does the kernel write its result?",
    ),
    Reason(
        "check.not_finite",
        Outcome.INCORRECT,
        "The output has NaN or infinite elements (outputs are filled with NaN beforehand).",
        "Write every element; subtract the maximum before exp.",
    ),
    Reason(
        "check.input_mutated",
        Outcome.INCORRECT,
        "forward changed its inputs.",
        "Write to a tensor of your own.",
    ),
    Reason(
        "check.output_aliases_input",
        Outcome.INCORRECT,
        "An output shares memory with an input, which the reference's does not.",
        "Return a tensor of your own.",
    ),
    Reason(
        "check.unstable",
        Outcome.INCORRECT,
        "The same input gave a different output later: something is kept between calls.",
        "Compute everything from the arguments of this call.",
    ),
    Reason(
        "cheat.timed_output",
        Outcome.REJECTED,
        "A call that was timed gave a wrong output, though calls that were not gave right ones.",
        "Do the same work in every call, whatever the values and whoever watches.",
    ),
    Reason(
        "cheat.clock",
        Outcome.REJECTED,
        "The time reported from the candidate's process disagrees with the grader's own clock.",
        "Leave clocks, events and streams alone; finish all work on the current stream.",
    ),
    Reason(
        "cheat.physics",
        Outcome.REJECTED,
        "The time is less than the GPU's memory needs to move the inputs and outputs once.",
        "Read every input and write every output in each call.",
    ),
)

REASONS: Mapping[str, Reason] = {reason.code: reason for reason in _TABLE}


def table() -> str:
    """The table as Markdown, as `docs/reasons.md` shows it."""
    lines = [
        "# Reason codes",
        "",
        "Every `reason` that a verdict can carry (written by `python -m kernelgym.judge.reasons`).",
        "",
        "| code | outcome | what was seen | for example | what to do |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| `{r.code}` | `{r.outcome}` | {r.meaning} | {EXAMPLES[r.code]} | {r.remedy} |"
        for r in _TABLE
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
