"""Whose kernels ran on the GPU in one call: from the profiler's list to counters and coverage.

A kernel is the candidate's *own* when a build of this judgement compiled one of its name, *library*
when the candidate's C++ calls cuBLAS and no torch operator that computes ran, else *foreign*. The
list comes from the candidate's process, so it is as good as that process's word; what decides
whether a torch operator ran is the recorder of the check.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from kernelgym.judge.failure import CheckFailed
from kernelgym.judge.protocol import KernelTime
from kernelgym.judge.verdict import Counters, Coverage, KernelCounters
from kernelgym.toolchain.build import BuildRequest, BuildResult

__all__ = [
    "calls_library",
    "foreign_compute",
    "kernel_identifier",
    "owned_kernels",
    "shorter_than_its_kernels",
    "split_by_owner",
]

_LIBRARY_CALL = re.compile(r"\bcublas(?:Lt)?[A-Z]\w*\s*\(")
# A kernel is slower while it is watched, small ones by much.
_LEAST_OF_KERNEL = 0.5
_LEAST_KERNEL_SECONDS = 1e-5
_OF_TORCH = re.compile(r"\bat(?:_cuda_detail)?::")
_COPY_OR_FILL = re.compile(
    r"fill|copy|distribution|arange|linspace|eye|range_kernel|randperm|CatArray", re.IGNORECASE
)
_OF_LIBRARY = re.compile(
    r"^(?:void )?(?:cutlass|cudnn|cublas|ampere_|volta_|turing_|hopper_|sm\d\d_|nvjet|xmma|"
    r"fmha_|pytorch_flash|gemv|gemmk1|gemmSN|splitK)|implicit_convolve|convolve_common_engine"
)


def kernel_identifier(name: str) -> str:
    """The plain name of a kernel: `"void ns::relu<float>(float*, int)"` → `"relu"`."""
    name = name.replace("(anonymous namespace)", "anonymous")
    name = re.split(r"[(<]", name, maxsplit=1)[0].strip()
    return name.rsplit(" ", 1)[-1].rsplit("::", 1)[-1]


def owned_kernels(builds: Iterable[BuildResult]) -> frozenset[str]:
    """Identifiers of the kernels that the candidate's builds contain."""
    return frozenset(kernel_identifier(k.name) for build in builds for k in build.kernels)


def calls_library(requests: Iterable[BuildRequest]) -> bool:
    """Whether a source that was built calls cuBLAS."""
    for request in requests:
        named = [file.text for file in request.files if file.path in request.sources]
        if any(map(_LIBRARY_CALL.search, (*request.cpp_sources, *request.cuda_sources, *named))):
            return True
    return False


def foreign_compute(
    kernels: Sequence[KernelTime], own: frozenset[str], *, library: bool
) -> tuple[str, ...]:
    """Names of kernels that are known to be torch's, or a library's that the candidate never calls.

    Copies and fills are not among them, nor is what cannot be told.

    Args:
        kernels: What ran.
        own: Identifiers of the candidate's kernels.
        library: Whether the candidate's C++ calls a library.
    """
    return tuple(
        kernel.name
        for kernel in kernels
        if kernel_identifier(kernel.name) not in own
        and (
            (_OF_TORCH.search(kernel.name) and not _COPY_OR_FILL.search(kernel.name))
            or (not library and _OF_LIBRARY.search(kernel.name))
        )
    )


def shorter_than_its_kernels(seconds: float, kernels: Sequence[KernelTime]) -> CheckFailed | None:
    """A failure where a call is said to take much less than one of its kernels does.

    Work on a stream that the timer does not watch looks so, and so does a patched event: the
    profiler has other clocks.

    Args:
        seconds: What the call is said to take.
        kernels: What ran in one call, by the profiler.
    """
    longest = max((k.seconds / k.launches for k in kernels if k.launches), default=0.0)
    if longest < _LEAST_KERNEL_SECONDS or seconds >= _LEAST_OF_KERNEL * longest:
        return None
    return CheckFailed(
        "cheat.clock",
        f"the call is said to take {seconds:.3g} s; one of its kernels alone takes {longest:.3g} s",
    )


def split_by_owner(
    kernels: Sequence[KernelTime], own: frozenset[str], *, library: bool
) -> tuple[Counters, Coverage] | None:
    """Counters (times and launches alone) and coverage of one call.

    Args:
        kernels: What ran.
        own: Identifiers of the candidate's kernels.
        library: Whether kernels of others are those of a library that the candidate calls.

    Returns:
        None when nothing is known to have run.
    """
    total = math.fsum(kernel.seconds for kernel in kernels)
    if not total > 0.0:
        return None
    rows = []
    for kernel in kernels:
        owner = "own" if kernel_identifier(kernel.name) in own else "foreign"
        # Copies and fills are torch's or the driver's, also beside a library's kernels.
        if owner == "foreign" and library and not kernel.name.startswith(("Mem", "void at::")):
            owner = "library"
        rows.append(
            KernelCounters(
                kernel.name, owner, kernel.launches, kernel.seconds, kernel.seconds / total
            )
        )
    shares = {
        owner: math.fsum(row.share for row in rows if row.owner == owner)
        for owner in ("own", "library", "foreign")
    }
    launches = sum(row.launches for row in rows)
    whole = KernelCounters("total", "all", launches, total, 1.0)
    return Counters("cupti", whole, tuple(rows)), Coverage(**shares)
