"""Memory that the grader shares with a candidate's process: inputs, weights and outputs."""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Sequence
from typing import Protocol

import torch

from kernelgym.judge.cuda_memory import CudaBlock
from kernelgym.judge.protocol import TensorSlot

__all__ = ["Buffer", "CudaBuffer", "SharedBuffer", "dtype_name", "layout", "named_dtype"]

# A page between tensors: what runs past the end of one does not land in the next.
_GAP = mmap.PAGESIZE


def dtype_name(dtype: torch.dtype) -> str:
    """`torch.float32` → `"float32"`."""
    return str(dtype).removeprefix("torch.")


def named_dtype(name: str) -> torch.dtype:
    """`"float32"` → `torch.float32`.

    Raises:
        ValueError: No such dtype.
    """
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"expected the name of a torch dtype, got {name!r}")
    return dtype


def layout(
    tensors: Sequence[tuple[str, tuple[int, ...], torch.dtype]],
) -> tuple[tuple[TensorSlot, ...], int]:
    """Places contiguous tensors in a buffer.

    Args:
        tensors: (name, shape, dtype) of each.

    Returns:
        The slots, and the buffer's size in bytes.
    """
    slots = []
    offset = _GAP
    for name, shape, dtype in tensors:
        count = 1
        for extent in shape:
            count *= extent
        nbytes = count * dtype.itemsize
        slots.append(TensorSlot(name, tuple(shape), dtype_name(dtype), offset, nbytes))
        offset += -(-nbytes // _GAP) * _GAP + _GAP
    return tuple(slots), offset


class Buffer(Protocol):
    """Memory that both processes map. `fd` is what the other one opens it by, or -1."""

    fd: int

    def tensor(self, slot: TensorSlot) -> torch.Tensor:
        """The slot's memory as a tensor; writes go through to the other process."""

    def fill(self, slot: TensorSlot, byte: int) -> None:
        """Fills a slot's memory with one byte value."""

    def close(self) -> None:
        """Closes the descriptor; the mapping goes when the last tensor on it does."""


class SharedBuffer:
    """An anonymous file in memory, mapped by both processes.

    Args:
        size: Bytes, when a new one is made.
        fd: Descriptor of an existing one, when mapped.
    """

    def __init__(self, size: int = 0, fd: int | None = None) -> None:
        if fd is None:
            fd = os.memfd_create("kernelgym", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(fd, max(size, 1))
            # A candidate that shrank the file would kill the grader with SIGBUS.
            seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
        self.fd = fd
        self._map = mmap.mmap(fd, os.fstat(fd).st_size)

    def tensor(self, slot: TensorSlot) -> torch.Tensor:
        """The slot's memory as a tensor; writes go through to the other process."""
        dtype = named_dtype(slot.dtype)
        count = slot.nbytes // dtype.itemsize
        if count == 0:
            return torch.empty(slot.shape, dtype=dtype)
        flat = torch.frombuffer(self._map, dtype=dtype, count=count, offset=slot.offset)
        return flat.view(slot.shape)

    def fill(self, slot: TensorSlot, byte: int) -> None:
        """Fills a slot's memory with one byte value."""
        self._map[slot.offset : slot.offset + slot.nbytes] = bytes([byte]) * slot.nbytes

    def close(self) -> None:
        """Closes the descriptor; the mapping goes when the last tensor on it does."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __del__(self) -> None:
        self.close()


class CudaBuffer:
    """A block of a GPU's memory, mapped by both processes.

    Args:
        device: The GPU; its context must be current.
        size: Bytes, on both sides.
        fd: Descriptor of an existing one; closed at once, for the mapping does not need it.

    Raises:
        EnvironmentFault: There is not enough memory.
    """

    def __init__(self, device: torch.device, size: int, fd: int | None = None) -> None:
        self.fd = -1
        self._device = device
        index = device.index or 0
        block = CudaBlock(index, size, fd)
        if fd is None:
            self.fd = block.export()
        else:
            os.close(fd)
        self._bytes = block.tensor(device)

    def tensor(self, slot: TensorSlot) -> torch.Tensor:
        """See `Buffer.tensor`."""
        dtype = named_dtype(slot.dtype)
        if slot.nbytes == 0:
            return torch.empty(slot.shape, dtype=dtype, device=self._device)
        return self._slice(slot).view(dtype).view(slot.shape)

    def fill(self, slot: TensorSlot, byte: int) -> None:
        """See `Buffer.fill`."""
        self._slice(slot).fill_(byte)

    def close(self) -> None:
        """See `Buffer.close`."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __del__(self) -> None:
        self.close()

    def _slice(self, slot: TensorSlot) -> torch.Tensor:
        return self._bytes[slot.offset : slot.offset + slot.nbytes]
