"""Python packages in which candidates write kernels: Triton, CuPy, PyCUDA, and others like them.

On a GPU they get folders of their own for what they keep, and their compilers' processes become
requests to the build service. On the emulator, which runs CUDA C++ alone, importing one says so.
"""

from __future__ import annotations

import importlib.abc
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from kernelgym.toolchain import subprocesses
from kernelgym.toolchain.build import BuildRequest, BuildResult

__all__ = ["GPU_PACKAGES", "UNSUPPORTED_ADVICE", "install"]

GPU_PACKAGES = frozenset(
    {"cupy", "cupyx", "cutlass", "numba", "pycuda", "taichi", "tilelang", "triton", "warp"}
)
"""Top-level packages whose kernels only a real GPU can run."""

UNSUPPORTED_ADVICE = (
    "the emulator runs CUDA C++ alone: write the kernel in CUDA C++ and build it with load_inline or "
    "load, or judge it on a GPU (device='cuda')"
)


def install(build: Callable[[BuildRequest], BuildResult], target: str) -> Callable[[], None]:
    """Prepares this process for what a candidate may import.

    Args:
        build: Sends a request to the build service and waits for its answer.
        target: `"emulator"` or an architecture.

    Returns:
        What undoes it.
    """
    if target == "emulator":
        refuser = _Refuser()
        sys.meta_path.insert(0, refuser)
        return lambda: sys.meta_path.remove(refuser)
    undo_processes = subprocesses.install(build, target)
    # The folder that the candidate may write is its current one.
    folder = os.getcwd()
    before = {name: os.environ.get(name) for name in _KEPT_IN}
    for name in _KEPT_IN:
        os.environ[name] = folder

    def undo() -> None:
        undo_processes()
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

    return undo


# Where Triton, CuPy and PyCUDA keep what they compiled, each below one of these.
_KEPT_IN = ("HOME", "TRITON_HOME", "XDG_CACHE_HOME")


class _Refuser(importlib.abc.MetaPathFinder):
    """Finds the packages that need a GPU, and says that they are not there."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> None:
        """Raises for one of them; leaves all others to the finders that follow."""
        package = fullname.partition(".")[0]
        if package in GPU_PACKAGES and _asked_by_candidate():
            raise ModuleNotFoundError(
                f"No module named {package!r} on the emulator: {UNSUPPORTED_ADVICE}", name=package
            )


def _asked_by_candidate() -> bool:
    """Whether the import statement stands outside of installed packages: torch asks for some, too."""
    frame = sys._getframe(2)
    while frame is not None and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back  # type: ignore[assignment]
    return frame is None or "-packages" not in frame.f_code.co_filename
