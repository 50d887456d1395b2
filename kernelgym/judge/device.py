"""Where a judgement's tensors live: the host's memory under the emulator, or a GPU's."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import psutil
import torch

from kernelgym.errors import ConfigError
from kernelgym.judge.buffers import Buffer, CudaBuffer, SharedBuffer
from kernelgym.toolchain.cuda import MISSING_NVCC, find_nvcc

__all__ = [
    "GpuFacts",
    "arithmetic",
    "build_target",
    "failure_reason",
    "free_bytes",
    "global_flags",
    "gpu_facts",
    "new_buffer",
    "open_buffer",
    "release_unused",
    "resolve_device",
    "restore_flags",
    "set_arithmetic",
    "settle",
]

_KEPT_BYTES = 4 * 2**30
_FAILURES = (
    ("an illegal memory access was encountered", "memory.out_of_bounds"),
    ("misaligned address", "memory.misaligned"),
    ("device-side assert triggered", "assert"),
    ("invalid configuration argument", "launch.configuration"),
    ("too many resources requested for launch", "launch.configuration"),
    ("unspecified launch failure", "kernel.error"),
)


def resolve_device(name: str) -> torch.device:
    """The device that a configuration names.

    Args:
        name: `"auto"` (a GPU where torch sees one and there is nvcc, else the CPU), `"cpu"`,
            `"cuda"` or `"cuda:N"`.

    Raises:
        ConfigError: It is not there; the message says what was looked for.
    """
    if name == "cpu":
        return torch.device("cpu")
    visible = torch.cuda.is_available()
    if name == "auto":
        found = visible and find_nvcc() is not None
        return torch.device("cuda", torch.cuda.current_device()) if found else torch.device("cpu")
    if not visible:
        why = (
            "this torch is built without CUDA"
            if torch.version.cuda is None
            else f"torch (for CUDA {torch.version.cuda}) finds no NVIDIA GPU with a working driver"
        )
        raise ConfigError(f"device: expected an NVIDIA GPU for {name!r}, got none: {why}")
    device = torch.device(name)
    index = torch.cuda.current_device() if device.index is None else device.index
    if index >= torch.cuda.device_count():
        raise ConfigError(
            f"device: expected an index below {torch.cuda.device_count()}, got {name!r}"
        )
    if find_nvcc() is None:
        raise ConfigError(f"device: {name!r} needs nvcc to compile for it. {MISSING_NVCC}")
    return torch.device("cuda", index)


def build_target(device: torch.device) -> str:
    """What to build for: `"emulator"`, or the GPU's architecture such as `"sm_90"`."""
    if device.type == "cpu":
        return "emulator"
    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}"


def new_buffer(device: torch.device, size: int) -> Buffer:
    """Memory of `size` bytes to share with another process.

    Raises:
        EnvironmentFault: The GPU has not enough memory.
    """
    return SharedBuffer(size) if device.type == "cpu" else CudaBuffer(device, size)


def open_buffer(device: torch.device, size: int, fd: int) -> Buffer:
    """Another process's buffer; takes the descriptor over."""
    return SharedBuffer(fd=fd) if device.type == "cpu" else CudaBuffer(device, size, fd)


def failure_reason(message: str) -> str | None:
    """The reason code of an error that CUDA's runtime reports, by its words; None for others."""
    return next((code for words, code in _FAILURES if words in message), None)


def set_arithmetic(precision: str) -> tuple[str, ...]:
    """Chooses how torch and its cuBLAS handle multiply fp32 numbers on a GPU.

    Args:
        precision: `"ieee"` or `"tf32"` for products, convolutions and recurrent layers alike; any
            other class leaves torch's own choice (products in IEEE fp32, convolutions in TF32).

    Returns:
        What was chosen before, for each of the three.
    """
    kinds = _fp32_kinds()
    before = tuple(str(kind.fp32_precision) for kind in kinds)
    if precision in ("ieee", "tf32"):
        for kind in kinds:
            kind.fp32_precision = precision
    return before


def global_flags(device: torch.device) -> dict[str, Any]:
    """Torch's settings for a whole process that change what a computation gives."""
    flags: dict[str, Any] = {"default dtype": torch.get_default_dtype()}
    if device.type == "cuda":
        names = ("fp32 products", "fp32 convolutions", "fp32 recurrent layers")
        flags.update(
            (name, str(kind.fp32_precision))
            for name, kind in zip(names, _fp32_kinds(), strict=True)
        )
    return flags


def restore_flags(device: torch.device, wanted: dict[str, Any]) -> tuple[str, ...]:
    """Puts `global_flags` back as they were.

    Returns:
        The names of those that had changed.
    """
    now = global_flags(device)
    changed = tuple(name for name, value in wanted.items() if now[name] != value)
    if changed:
        torch.set_default_dtype(wanted["default dtype"])
        for kind, value in zip(_fp32_kinds(), list(wanted.values())[1:], strict=False):
            kind.fp32_precision = value
    return changed


@contextlib.contextmanager
def arithmetic(precision: str) -> Iterator[None]:
    """`set_arithmetic` for a block; what was before comes back."""
    before = set_arithmetic(precision)
    try:
        yield
    finally:
        if precision in ("ieee", "tf32"):
            for kind, chosen in zip(_fp32_kinds(), before, strict=True):
                kind.fp32_precision = chosen


def release_unused(device: torch.device, wanted: int = 0) -> None:
    """Gives back what torch's allocator keeps for later, where others may need it.

    Args:
        device: The device; nothing is kept for a CPU.
        wanted: How much must be free for it to be left: bytes. By default much that is kept goes.
    """
    if device.type == "cpu":
        return
    if wanted and torch.cuda.mem_get_info(device)[0] >= wanted:
        return
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    if kept > _KEPT_BYTES:
        torch.cuda.empty_cache()


def free_bytes(device: torch.device) -> int:
    """Memory that nobody uses, on a GPU or of the machine."""
    if device.type == "cpu":
        return int(psutil.virtual_memory().available)
    return int(torch.cuda.mem_get_info(device)[0])


def settle(device: torch.device) -> None:
    """Waits for the device: what another process sees next is what has been asked for so far."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


@dataclasses.dataclass(frozen=True)
class GpuFacts:
    """What a GPU says of itself.

    Attributes:
        name: Such as `"NVIDIA H200"`.
        uuid: Identifies the card, whatever its index.
        l2_bytes: Size of its L2 cache.
        cuda: The CUDA version that torch is built for.
        driver: The driver's version, or `""` where the kernel does not tell.
    """

    name: str
    uuid: str
    l2_bytes: int
    cuda: str
    driver: str


def gpu_facts(device: torch.device) -> GpuFacts:
    """Facts of a GPU."""
    properties = torch.cuda.get_device_properties(device)
    return GpuFacts(
        name=str(properties.name),
        uuid=str(properties.uuid),
        l2_bytes=int(properties.L2_cache_size),
        cuda=str(torch.version.cuda),
        driver=_driver_version(),
    )


def _fp32_kinds() -> tuple[Any, ...]:
    backends: Any = torch.backends
    return backends.cuda.matmul, backends.cudnn.conv, backends.cudnn.rnn


def _driver_version() -> str:
    file = pathlib.Path("/proc/driver/nvidia/version")
    match = re.search(r"\b\d{3}\.\d+(?:\.\d+)?\b", file.read_text() if file.exists() else "")
    return match.group() if match else ""
