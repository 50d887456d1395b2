"""Whose kernels ran on the GPU in one call: from the profiler's list to counters and coverage.

A kernel is the candidate's *own* when a build of this judgement compiled one of its name (nvcc and
g++, or the assembler for Triton and PyCUDA), or when the workspace declares one of its name and
compiles it in its own process, out of the grader's sight (CuPy). It is *library* when the
candidate's C++ calls cuBLAS or cuDNN and no torch operator that computes ran, else *foreign*. The
list comes from the candidate's process, so it is as good as that process's word; what decides
whether a torch operator ran is the recorder of the check.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Iterator, Sequence

from kernelgym.judge.failure import CheckFailed
from kernelgym.judge.protocol import KernelTime
from kernelgym.judge.verdict import Counters, Coverage, KernelCounters
from kernelgym.toolchain.build import BuildRequest, BuildResult, SourceFile
from kernelgym.toolchain.python_source import parse

__all__ = [
    "calls_library",
    "declared_kernels",
    "foreign_compute",
    "kernel_identifier",
    "owned_kernels",
    "shorter_than_its_kernels",
    "split_by_owner",
]

_LIBRARY_CALL = re.compile(r"\b(?:cublas(?:Lt)?|cudnn)[A-Z]\w*\s*\(")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_BOUNDS = re.compile(r"\b__\w+__\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")
_GLOBAL = re.compile(r"__global__\s[^(){};=]*?\b(?P<name>[A-Za-z_]\w*)\s*\(")
# Kernels that torch's compiler writes: it hands them to Triton as a candidate does its own.
_INDUCTORS = re.compile(r"triton_(?:poi|per|red|tem|for|mm|bmm|unk|flex|helion)\w*")
# What torch launches to create, fill, draw, copy and convert, which forward may do.
_HARMLESS = re.compile(
    r"^Mem|Fill|[Cc]opy|distribution_|elementwise_kernel_with_index|arange|linspace|random_from_to"
)
# Whose kernels are not a library's, also where one is called.
_NO_LIBRARYS = ("Mem", "void at::", "at::", "cupy_", "triton_")
# Which argument is the kernel's name, for CuPy's kernel classes.
_CUPY_MAKERS = {"RawKernel": 1, "ElementwiseKernel": 3, "ReductionKernel": 6}
# A kernel is slower while it is watched, small ones by much.
_LEAST_OF_KERNEL = 0.5
_LEAST_KERNEL_SECONDS = 1e-5


def kernel_identifier(name: str) -> str:
    """The plain name of a kernel: `"void ns::relu<float>(float*, int)"` → `"relu"`."""
    name = name.replace("(anonymous namespace)", "anonymous")
    name = re.split(r"[(<]", name, maxsplit=1)[0].strip()
    return name.rsplit(" ", 1)[-1].rsplit("::", 1)[-1]


def owned_kernels(builds: Iterable[BuildResult]) -> frozenset[str]:
    """Identifiers of the kernels that the candidate's builds contain.

    Those that torch's own compiler has written are nobody's work here.
    """
    names = {kernel_identifier(k.name) for build in builds for k in build.kernels}
    return frozenset(name for name in names if not _INDUCTORS.fullmatch(name))


def declared_kernels(files: Sequence[SourceFile]) -> frozenset[str]:
    """Identifiers of the kernels that a workspace spells out, whoever compiles them.

    Those are `__global__` functions in any file and in the strings of Python files, and the names
    that CuPy's kernels are made under. A name that is put together at run time is not found.
    """
    found: set[str] = set()
    for file in files:
        text = _COMMENT.sub(" ", file.text) if not file.path.endswith(".py") else file.text
        found.update(m["name"] for m in _GLOBAL.finditer(_BOUNDS.sub(" ", text)))
        if file.path.endswith(".py"):
            found.update(_made_by_cupy(file.text))
    return frozenset(found)


def calls_library(requests: Iterable[BuildRequest]) -> bool:
    """Whether a source that was built calls cuBLAS or cuDNN."""
    for request in requests:
        named = [file.text for file in request.files if file.path in request.sources]
        if any(map(_LIBRARY_CALL.search, (*request.cpp_sources, *request.cuda_sources, *named))):
            return True
    return False


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
        owner = _owner(kernel, own, library=library)
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
    return Counters("activity", whole, tuple(rows)), Coverage(**shares)


def foreign_compute(
    kernels: Sequence[KernelTime], own: frozenset[str], *, library: bool
) -> tuple[str, ...]:
    """Names of kernels that ran, compute, and are neither the candidate's nor a library's it calls.

    Args:
        kernels: What ran.
        own: Identifiers of the candidate's kernels.
        library: Whether the candidate's C++ calls a library.
    """
    return tuple(
        kernel.name
        for kernel in kernels
        if _owner(kernel, own, library=library) == "foreign" and not _HARMLESS.search(kernel.name)
    )


def _owner(kernel: KernelTime, own: frozenset[str], *, library: bool) -> str:
    if kernel_identifier(kernel.name) in own:
        return "own"
    # Copies and fills are torch's or the driver's, also beside a library's kernels.
    return "library" if library and not kernel.name.startswith(_NO_LIBRARYS) else "foreign"


def _made_by_cupy(text: str) -> Iterator[str]:
    tree = parse(text)
    if tree is None:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            maker = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            maker = node.func.id if isinstance(node.func, ast.Name) else maker
            if maker in _CUPY_MAKERS:
                place = _CUPY_MAKERS[maker]
                given = [keyword.value for keyword in node.keywords if keyword.arg == "name"]
                given += node.args[place : place + 1]
                names = [one.value for one in given if isinstance(one, ast.Constant)]
                yield from (name for name in names if isinstance(name, str))
        elif isinstance(node, ast.FunctionDef) and any(map(_is_rawkernel, node.decorator_list)):
            yield node.name


def _is_rawkernel(decorator: ast.expr) -> bool:
    """Whether it is `jit.rawkernel`, called or not."""
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(named, ast.Attribute) and named.attr == "rawkernel"
