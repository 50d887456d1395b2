"""Keeps a candidate's Python on the emulator from addresses.

There a tensor's memory is the process's own, and counts lie beside it: Python that writes to an
address could compute on the host unseen, or write its own counts. On a GPU an address is of no use,
and honest libraries (CuPy, cuda-python) need `ctypes`, so this is for the emulator alone.

What is refused: `ctypes`' functions that take addresses (they are taken out of the module, and
Python's audit events, which cannot be switched off again, refuse the rest) and walks over the
garbage collector's lists. What is not: a module that hands out an address by another way
(NumPy's `__array_interface__` does); the guard of device memory finds what is then touched.
"""

from __future__ import annotations

import _ctypes
import ctypes
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["MemoryRefused", "refuse_raw_memory"]

_REFUSED_EVENTS = frozenset(
    {
        *("ctypes.dlopen", "ctypes.dlsym", "ctypes.dlsym/handle", "ctypes.cdata"),
        *("ctypes.cdata/buffer", "ctypes.string_at", "ctypes.wstring_at", "ctypes.memoryview_at"),
        *("ctypes.call_function", "ctypes.addressof", "ctypes.PyObj_FromPtr"),
        *("gc.get_objects", "gc.get_referrers", "gc.get_referents"),
    }
)
# They are called without an audit event.
_TAKING_ADDRESSES = (
    *("memmove", "memset", "cast", "string_at", "wstring_at", "memoryview_at", "pythonapi"),
    *("CFUNCTYPE", "PYFUNCTYPE", "_CFuncPtr", "CFuncPtr", "CDLL", "PyDLL", "cdll", "pydll"),
)


class MemoryRefused(RuntimeError):
    """A candidate reached for memory by its address."""


class _Refused:
    """Stands where something was taken away."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise _refusal(self._name)

    def __getattr__(self, name: str) -> Any:
        raise _refusal(self._name)


def _refusal(what: str) -> MemoryRefused:
    return MemoryRefused(f"{what}: a candidate on the emulator has no way to memory by its address")


def refuse_raw_memory() -> Callable[[str], object]:
    """Takes `ctypes` and `gc` away from this process, for good.

    Returns:
        A function that still loads a shared library, and gives its handle, in which nothing can be
        looked up any more.
    """
    real: Callable[[str, int], int] = _ctypes.dlopen
    loading = False

    def load(path: str) -> object:
        nonlocal loading
        loading = True
        try:
            return real(path, ctypes.DEFAULT_MODE)
        finally:
            loading = False

    for module in (ctypes, _ctypes):
        for name in list(vars(module)):
            if name in _TAKING_ADDRESSES or name.endswith("_addr"):
                setattr(module, name, _Refused(f"ctypes.{name}"))

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _REFUSED_EVENTS and not (loading and event == "ctypes.dlopen"):
            raise _refusal(event)

    sys.addaudithook(refuse)
    return load
