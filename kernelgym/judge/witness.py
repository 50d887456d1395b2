"""A second witness of what torch ran: its own profiler, below Python.

`OperatorRecorder` is a dispatch mode: it tells the line, but can be left aside
(`_disable_current_modes`, native code). Torch's profiler is called by the dispatcher itself.
Whatever went through a dispatch mode shows in its list as such; an operator that computes and did
not, ran behind the recorder's back. It watches the calling thread, so it is for the emulator, where
a candidate can start no other; it is torch's older profiler, because the newer one is a thread.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch._C._profiler import _ExperimentalConfig
from torch.autograd import profiler

from kernelgym.judge.operators import TORCHS_NAMESPACES, OperatorCall, operator_kind

__all__ = ["OperatorWitness"]

_THROUGH_A_MODE = "PythonDispatchMode"
_MARK = "kernelgym::witness"
_autograd: Any = torch.autograd


class _Mark(NamedTuple):
    kind: str  # "push", "pop" or "mark"
    name: str


class OperatorWitness:
    """Lists the operators that ran inside the `with` block without passing a dispatch mode.

    Attributes:
        hidden: Their names, such as `"aten::relu"`, in order; after the block.
        watched: Names of those that compute and did pass one.
        interrupted: Whether the profiler was stopped or started anew within the block.
    """

    def __init__(self) -> None:
        self.hidden: tuple[str, ...] = ()
        self.watched: tuple[str, ...] = ()
        self.interrupted = False

    def __enter__(self) -> OperatorWitness:
        _autograd._enable_profiler_legacy(
            _autograd.ProfilerConfig(
                _autograd.ProfilerState.CPU,
                False,
                False,
                False,
                False,
                False,
                _ExperimentalConfig(),
            )
        )
        with profiler.record_function(_MARK):
            return self

    def __exit__(self, *exc: object) -> None:
        try:
            threads = _autograd._disable_profiler_legacy()
        except RuntimeError:  # somebody has stopped it
            self.interrupted = True
            return
        marks = [_Mark(event.kind(), event.name()) for thread in threads for event in thread]
        self.interrupted = not any(mark.name == _MARK for mark in marks)
        self.hidden, self.watched = map(tuple, _sorted_out(marks))

    def unrecorded(self, calls: Iterable[OperatorCall]) -> tuple[str, ...]:
        """Names of operators that passed a dispatch mode, and yet are not among its calls.

        Args:
            calls: What the recorder says that it saw.
        """
        told = collections.Counter(
            call.name.split(".")[1]
            for call in calls
            if call.kind in ("compute", "own") or call.elements <= 1
        )
        seen = collections.Counter(name.partition("::")[2] for name in self.watched)
        return tuple((seen - told).elements())


def _sorted_out(marks: Iterable[_Mark]) -> tuple[list[str], list[str]]:
    """Operators that compute: with no dispatch mode above or below, and with one right below."""
    found: list[str] = []
    watched: list[str] = []
    above: list[tuple[str, int]] = []  # open operators, and how much had been found before
    through = [False]  # whether a mode was seen below, for each open one
    modes = 0
    around: list[int] = []  # modes around each custom operator, whose body no mode sees
    for mark in marks:
        if mark.kind == "push":
            if mark.name == _THROUGH_A_MODE and modes == 0 and above and _computes(above[-1][0]):
                watched.append(above[-1][0])
            above.append((mark.name, len(found)))
            if _is_custom(mark.name):
                around.append(modes)
                modes = 0
            through.append(False)
            modes += mark.name == _THROUGH_A_MODE
        elif mark.kind == "pop" and above:
            name, place = above.pop()
            if _is_custom(name):
                modes = around.pop()
            seen = through.pop() or name == _THROUGH_A_MODE
            through[-1] |= seen
            modes -= name == _THROUGH_A_MODE
            if not seen and modes == 0 and _computes(name):
                found.insert(place, name)
    return found, watched


@functools.cache
def _is_custom(name: str) -> bool:
    """Whether it is an operator that a candidate has registered."""
    space, colons, _ = name.partition("::")
    return bool(colons) and space != "kernelgym" and space not in TORCHS_NAMESPACES


@functools.cache
def _computes(name: str) -> bool:
    """Whether that operator, in all its overloads, computes in a kernel of its own."""
    space, _, plain = name.partition("::")
    if space not in ("aten", "prims", "mkldnn", "quantized") or not plain:
        return False
    packet = getattr(getattr(torch.ops, space), plain, None)
    if packet is None:
        return False
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    overloads = [getattr(packet, overload) for overload in packet.overloads()]
    return all(operator_kind(overload) == "compute" for overload in overloads) and any(
        has_kernel(overload.name(), "CPU") for overload in overloads
    )
