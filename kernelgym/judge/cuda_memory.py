"""GPU memory that two processes share, through CUDA's virtual memory management.

Each buffer is an allocation of its own, exported as a file descriptor: whoever gets the descriptor
sees this block and no other of the exporter's (a handle of CUDA's older IPC shows the whole block
that an address lies in, and needs a common namespace of process ids). Made by the driver's API,
which every torch for CUDA has loaded.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from typing import Any

import torch

from kernelgym.errors import EnvironmentFault

__all__ = ["CudaBlock"]

_PINNED, _FILE_DESCRIPTOR, _ON_DEVICE, _READ_AND_WRITE, _MINIMUM = 1, 1, 1, 3, 0


class _Location(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class _Properties(ctypes.Structure):
    """`CUmemAllocationProp`."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("win32", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


class _Access(ctypes.Structure):
    """`CUmemAccessDesc`."""

    _fields_ = (("location", _Location), ("flags", ctypes.c_int))


class CudaBlock:
    """Device memory mapped into this process: made anew, or another process's.

    Args:
        device: Index of the GPU; torch's context on it must be current.
        size: Bytes needed; what is mapped is a multiple of the driver's granularity.
        fd: Descriptor of a block that another process made with the same `size`. It may be closed
            afterwards.

    Attributes:
        pointer: Its address in this process.
        size: Bytes mapped.

    Raises:
        EnvironmentFault: The driver refused, for want of memory most likely.
    """

    def __init__(self, device: int, size: int, fd: int | None = None) -> None:
        self.pointer = 0
        self._device = device
        self._handle = ctypes.c_uint64()
        location = _Location(_ON_DEVICE, device)
        properties = _Properties(_PINNED, _FILE_DESCRIPTOR, location)
        granularity = ctypes.c_size_t()
        _call(
            "cuMemGetAllocationGranularity",
            *(ctypes.byref(granularity), ctypes.byref(properties), _MINIMUM),
        )
        self.size = -(-max(size, 1) // granularity.value) * granularity.value
        length = ctypes.c_size_t(self.size)
        handle = ctypes.byref(self._handle)
        zero = ctypes.c_uint64(0)
        if fd is None:
            _call("cuMemCreate", handle, length, ctypes.byref(properties), zero)
        else:
            _call("cuMemImportFromShareableHandle", handle, ctypes.c_void_p(fd), _FILE_DESCRIPTOR)
        try:
            pointer = ctypes.c_uint64()
            none = ctypes.c_size_t(0)
            _call("cuMemAddressReserve", ctypes.byref(pointer), length, none, zero, zero)
            self.pointer = pointer.value
            _call("cuMemMap", pointer, length, none, self._handle, zero)
            access = _Access(location, _READ_AND_WRITE)
            count = ctypes.c_size_t(1)
            _call("cuMemSetAccess", pointer, length, ctypes.byref(access), count)
        except EnvironmentFault:
            _call("cuMemRelease", self._handle)
            raise

    def export(self) -> int:
        """A new descriptor of the block, for its maker to send to another process."""
        fd = ctypes.c_int()
        zero = ctypes.c_uint64(0)
        target = ctypes.byref(fd)
        _call("cuMemExportToShareableHandle", target, self._handle, _FILE_DESCRIPTOR, zero)
        os.set_inheritable(fd.value, False)
        return fd.value

    def tensor(self, device: torch.device) -> torch.Tensor:
        """The whole block as a tensor of bytes, which keeps the block alive."""
        return torch.as_tensor(_Array(self), device=device)

    def free(self) -> None:
        """Unmaps the block; its tensors must not be used any more."""
        if self.pointer:
            torch.cuda.synchronize(self._device)  # Work on it may still be under way.
            pointer, length = ctypes.c_uint64(self.pointer), ctypes.c_size_t(self.size)
            self.pointer = 0
            _call("cuMemUnmap", pointer, length)
            _call("cuMemAddressFree", pointer, length)
            _call("cuMemRelease", self._handle)

    def __del__(self) -> None:
        # Where the driver has shut down already, the memory is gone with it.
        with contextlib.suppress(EnvironmentFault, RuntimeError):
            self.free()


class _Array:
    """What `torch.as_tensor` takes for an array in device memory."""

    def __init__(self, block: CudaBlock) -> None:
        self._block = block

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": (self._block.size,),
            "typestr": "|u1",
            "data": (self._block.pointer, False),
            "version": 3,
            "stream": None,
        }


@functools.cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def _call(name: str, *arguments: Any) -> None:
    status = getattr(_driver(), name)(*arguments)
    if status != 0:
        text = ctypes.c_char_p()
        _driver().cuGetErrorString(status, ctypes.byref(text))
        said = (text.value or b"unknown error").decode()
        raise EnvironmentFault(f"{name}: expected success, got {status} ({said})")
