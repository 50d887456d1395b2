"""Tells the emulator's runtime which memory torch's tensors are, and what of it was written."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from kernelgym.toolchain.emulator_runtime import EmulatorRuntime

__all__ = ["AllocationTracker"]


class AllocationTracker(TorchDispatchMode):
    """Registers the memory of every tensor that a torch operator returns inside the `with` block.

    `torch.empty` and its kin count as not yet written; any other operator's output as written.
    Tensors made by a candidate's C++ code are known to the runtime already: it allocated them.
    """

    def __init__(self, runtime: EmulatorRuntime) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._runtime = runtime
        self._keep: dict[int, Any] = {}  # no address is used twice while it is registered

    def register(self, tensor: torch.Tensor, label: str, whole_storage: bool = True) -> None:
        """Registers one tensor's memory as written."""
        if whole_storage:
            storage = tensor.untyped_storage()
            pointer, nbytes = storage.data_ptr(), storage.nbytes()
        else:
            pointer, nbytes = tensor.data_ptr(), tensor.numel() * tensor.element_size()
        if nbytes:
            if pointer in self._keep:
                self._runtime.unregister(pointer)
            self._keep[pointer] = tensor
            self._runtime.register(pointer, nbytes, initialised=True, label=label)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        with self._runtime.device_work():
            out = func(*args, **(kwargs or {}))
        name = func._schema.name.split("::")[-1]
        written = "empty" not in name
        for leaf in tree_leaves(out):
            if not isinstance(leaf, torch.Tensor):
                continue
            storage = leaf.untyped_storage()
            pointer, nbytes = storage.data_ptr(), storage.nbytes()
            if not nbytes:
                continue
            if pointer not in self._keep:
                self._keep[pointer] = storage
                self._runtime.register(pointer, nbytes, initialised=written, label=f"torch.{name}")
            elif written and func._schema.is_mutable:
                self._runtime.mark_initialised(leaf.data_ptr(), leaf.numel() * leaf.element_size())
        return out
