"""From what a candidate's process says has failed to a reason."""

from __future__ import annotations

from kernelgym.judge import protocol
from kernelgym.judge.device import failure_reason
from kernelgym.judge.failure import CheckFailed
from kernelgym.toolchain.build import BuildResult
from kernelgym.toolchain.packages import UNSUPPORTED_ADVICE

__all__ = ["raised"]

_MAX_MESSAGE = 4096
_MAX_OUTPUT = 16 * 1024
# What g++ says of an identifier that the emulator's headers forbid.
_POISONED = "attempt to use poisoned"
# What Triton, its assembler, CuPy and PyCUDA raise when a kernel does not compile.
_COMPILERS_ERRORS = ("CompilationError", "PTXASError", "CompileException", "CompileError")
_NO_THREAD = "can't start new thread"  # Python's words


def raised(
    answer: protocol.Failed, build: BuildResult | None, phase: str, *, gpu: bool
) -> CheckFailed:
    """The failure that an answer amounts to.

    Args:
        answer: What the candidate's process says.
        build: The last build that the grader made for it.
        phase: `"import"`, `"construct"` or `"run"`.
        gpu: Whether it runs on a GPU.
    """
    of_build = answer.kind == "BuildFailed" or answer.kind in _COMPILERS_ERRORS
    if of_build and build is not None and build.status != "ok":
        # What the grader itself built counts, not what the candidate says of it.
        errors = [d for d in build.diagnostics if d.severity == "error"]
        first = errors[0].text if errors else "the build failed"
        reason = {
            "timeout": "build.timeout",
            "unsupported": "emulator.unsupported",
        }.get(build.status, "build.compile")
        if any(_POISONED in error.text for error in errors):
            reason = "rule.instrumentation"
        return CheckFailed(reason, first, diagnostics=build.diagnostics, output=answer.output)
    reason = f"{phase}.error"
    if answer.kind in _COMPILERS_ERRORS:
        reason = "build.compile"
    elif UNSUPPORTED_ADVICE in answer.message and not gpu:
        reason = "emulator.unsupported"
    elif phase == "run" and gpu:
        reason = failure_reason(answer.message) or reason
    elif not gpu and answer.kind == "MemoryRefused":
        reason = "rule.raw_memory"
    elif not gpu and _NO_THREAD in answer.message:
        reason = "rule.threads"
    return CheckFailed(
        reason,
        f"{answer.kind}: {answer.message}"[:_MAX_MESSAGE],
        diagnostics=[d for d in answer.diagnostics[:20] if 0 <= d.line < 2**31],
        ran=phase == "run",
        output=answer.output[-_MAX_OUTPUT:],
    )
