"""Where a judgement's tensors live: the host's memory under the emulator, or a GPU's."""

from __future__ import annotations

import dataclasses

import torch

from kernelgym.errors import ConfigError
from kernelgym.judge.buffers import Buffer, CudaBuffer, SharedBuffer
from kernelgym.toolchain.cuda import MISSING_NVCC, find_nvcc

__all__ = [
    "GpuFacts",
    "build_target",
    "failure_reason",
    "gpu_facts",
    "new_buffer",
    "open_buffer",
    "resolve_device",
    "settle",
]

_FAILURES = (
    ("an illegal memory access was encountered", "memory.out_of_bounds"),
    ("misaligned address", "memory.misaligned"),
    ("device-side assert triggered", "kernel.assert"),
    ("invalid configuration argument", "launch.config"),
    ("too many resources requested for launch", "launch.config"),
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
    """

    name: str
    uuid: str
    l2_bytes: int
    cuda: str


def gpu_facts(device: torch.device) -> GpuFacts:
    """Facts of a GPU."""
    properties = torch.cuda.get_device_properties(device)
    return GpuFacts(
        name=str(properties.name),
        uuid=str(properties.uuid),
        l2_bytes=int(properties.L2_cache_size),
        cuda=str(torch.version.cuda),
    )
