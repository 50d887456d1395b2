"""The emulator's runtime library, called through ctypes."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from pathlib import Path

__all__ = ["EmulatorRuntime"]


class EmulatorRuntime:
    """`libkgemu.so` in this process: one device, shared by all extension modules.

    Args:
        path: The library. Loaded with global symbols, so that modules loaded later find it.

    Raises:
        OSError: The library cannot be loaded.
    """

    def __init__(self, path: Path | str) -> None:
        self._library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        pointer, size, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
        for name, result, arguments in (
            ("alloc", pointer, (size, ctypes.c_int, text)),
            ("free", None, (pointer,)),
            ("register", None, (pointer, size, ctypes.c_int, text)),
            ("unregister", None, (pointer,)),
            ("mark_initialised", None, (pointer, size)),
            ("set_order", None, (ctypes.c_uint,)),
            ("watch_host", None, (ctypes.c_int,)),
            ("guard_device", None, (ctypes.c_int,)),
            ("begin_device_work", None, ()),
            ("end_device_work", None, ()),
            ("do_nothing", None, (ctypes.c_int,)),
            ("set_access_budget", None, (ctypes.c_ulonglong,)),
            ("reset", None, ()),
            ("report", text, ()),
        ):
            function = getattr(self._library, f"kgemu_{name}")
            function.restype = result
            function.argtypes = arguments

    def alloc(self, size: int, *, initialised: bool = False, label: str = "") -> int:
        """Allocates device memory with guard zones.

        Args:
            size: Bytes.
            initialised: Whether reading before writing is allowed.
            label: Names the memory in findings.

        Returns:
            Its address.

        Raises:
            MemoryError: There is not that much memory.
        """
        address = self._library.kgemu_alloc(size, int(initialised), label.encode())
        if address is None:
            raise MemoryError(f"expected {size} bytes of emulated device memory, got none")
        return int(address)

    def free(self, address: int) -> None:
        """Frees what `alloc` gave."""
        self._library.kgemu_free(address)

    def register(
        self, address: int, size: int, *, initialised: bool = True, label: str = ""
    ) -> None:
        """Makes memory that somebody else owns known as device memory: `size` bytes."""
        self._library.kgemu_register(address, size, int(initialised), label.encode())

    def unregister(self, address: int) -> None:
        """Forgets what `register` made known."""
        self._library.kgemu_unregister(address)

    def mark_initialised(self, address: int, size: int) -> None:
        """Says that something other than a kernel wrote `size` bytes."""
        self._library.kgemu_mark_initialised(address, size)

    def set_order(self, order: int) -> None:
        """The order of blocks and threads: 0 forward, 1 reverse, otherwise permuted by that seed."""
        self._library.kgemu_set_order(order)

    def set_access_budget(self, accesses: int) -> None:
        """After so many watched accesses, only a sample of each launch's blocks is run watched."""
        self._library.kgemu_set_access_budget(accesses)

    def watch_host(self, watched: bool) -> None:
        """Says whether host code that touches device memory is to be found, from now on."""
        self._library.kgemu_watch_host(int(watched))

    def guard_device(self, guarded: bool) -> None:
        """Says whether tensors' pages are out of reach of all code but kernels, from now on.

        The first touch is a finding, `memory.host_access`, and ends the guard.
        """
        self._library.kgemu_guard_device(int(guarded))

    @contextlib.contextmanager
    def device_work(self) -> Iterator[None]:
        """Inside the block tensors may be touched: an operator of torch stands for the device."""
        self._library.kgemu_begin_device_work()
        try:
            yield
        finally:
            self._library.kgemu_end_device_work()

    def do_nothing(self, wanted: bool) -> None:
        """Says whether launches and library calls leave everything as it is, from now on."""
        self._library.kgemu_do_nothing(int(wanted))

    @contextlib.contextmanager
    def call(self, *, watched: bool = False, idle: bool = False) -> Iterator[None]:
        """The block is one call of a candidate's.

        Args:
            watched: Whether host code that touches device memory is found.
            idle: Whether launches and library calls leave everything as it is.
        """
        self.do_nothing(idle)
        self.watch_host(watched)
        self.guard_device(watched)
        try:
            yield
        finally:
            self.guard_device(False)
            self.watch_host(False)
            self.do_nothing(False)

    def reset(self) -> None:
        """Forgets launches, findings and errors so far."""
        self._library.kgemu_reset()

    def report(self) -> str:
        """Everything since the last reset, as JSON for `emulator_report.parse_report`."""
        return str(self._library.kgemu_report().decode())
