"""What `doctor` says of the ways to build for a GPU, and of the packages that kernels are written in."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.metadata
import importlib.util
import re
import sys
from collections.abc import Iterator

import torch

from kernelgym.doctor import Finding
from kernelgym.errors import SandboxFault, ToolchainFault
from kernelgym.toolchain.cuda import find_nvcc, nvcc_version

__all__ = ["LEAST_DRIVERS", "driver_finding", "ways"]

LEAST_DRIVERS = {11: "450.80.02", 12: "525.60.13", 13: "580.65.06"}
"""The least driver that runs what a major version of CUDA has built (CUDA's release notes)."""

_PACKAGES = {"triton": "triton", "cupy": "cupy-cuda13x", "pycuda": "pycuda"}


def ways() -> Iterator[Finding]:
    """The ways to build for a GPU on this machine, and the packages that are there."""
    path = find_nvcc()
    if path is not None:
        # A fault of nvcc's is told by its own line.
        with contextlib.suppress(ToolchainFault, SandboxFault):
            yield driver_finding(nvcc_version(path), _driver_cuda())
    exchange = hasattr(torch.Tensor, "__dlpack_c_exchange_api__")
    detail = "fast (a stand-in for torch's headers), then torch's own headers by themselves"
    if exchange:
        yield Finding("ways to build", "ok", detail)
    else:
        yield Finding(
            "ways to build",
            "optional",
            f"{detail}; tensors pass through Python, for torch {torch.__version__} has no exchange "
            "API (2.10 or newer): some microseconds more a call",
            f"{sys.executable} -m pip install 'torch>=2.10'",
        )
    found = [f"{p} {_version(p)}" for p in _PACKAGES if importlib.util.find_spec(p) is not None]
    lacking = [name for p, name in _PACKAGES.items() if importlib.util.find_spec(p) is None]
    yield Finding(
        "kernel packages",
        "optional" if lacking else "ok",
        f"{', '.join(found) or 'none'}; load_inline and load need none",
        f"{sys.executable} -m pip install {' '.join(lacking)}" if lacking else "",
    )


def driver_finding(nvcc: str, supported: int | None) -> Finding:
    """Whether the driver runs what nvcc builds.

    Args:
        nvcc: Its version, such as `"V13.0.88"`.
        supported: The CUDA version that the driver supports, as 1000 x major + 10 x minor; None
            where there is no driver.
    """
    match = re.search(r"(\d+)\.(\d+)", nvcc)
    major = int(match[1]) if match is not None else 0
    least = LEAST_DRIVERS.get(major, "a newer one")
    if supported is None:
        detail = f"none; what nvcc {nvcc} builds runs with driver {least} or newer"
        return Finding("driver", "optional", detail, f"NVIDIA's driver {least} or newer, and a GPU")
    has = f"supports CUDA {supported // 1000}.{supported % 1000 // 10}"
    if supported >= major * 1000:
        return Finding("driver", "ok", f"{has}; nvcc {nvcc} needs {least} or newer")
    return Finding(
        "driver",
        "optional",
        f"{has}, too old for what nvcc {nvcc} builds: kernels would not load",
        f"driver {least} or newer, or {sys.executable} -m pip install "
        f"'nvidia-cuda-nvcc<{major}' with a torch for CUDA {supported // 1000}",
    )


def _driver_cuda() -> int | None:
    """The CUDA version that the driver supports; None where there is no driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    version = ctypes.c_int()
    return version.value if driver.cuDriverGetVersion(ctypes.byref(version)) == 0 else None


def _version(package: str) -> str:
    for name in (package, f"{package}-cuda13x", f"{package}-cuda12x"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return ""
