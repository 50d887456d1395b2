"""Which torch operators a piece of code runs: of what kind, how many bytes and FLOPs.

Used on both sides: for the candidate's `forward` (what ran besides its own kernels), and for the
reference, whose operators make the modelled baselines.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

__all__ = [
    "TORCHS_NAMESPACES",
    "OperatorCall",
    "OperatorRecorder",
    "kind_by_schema",
    "operator_kind",
]

# Creation and data movement do no arithmetic; everything that is neither these nor a view computes.
_CREATE = frozenset(
    {
        "empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided", "zeros",
        "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full", "full_like", "new_full",
        "scalar_tensor", "tensor", "as_tensor", "arange", "linspace", "eye", "rand", "rand_like", "randn", "randn_like",
        "randint", "randperm", "zero_", "fill_", "zero", "fill", "bernoulli_", "normal_",
        "uniform_", "lift_fresh", "resize_",
    }
)  # fmt: skip
_MOVE = frozenset(
    {"clone", "copy_", "copy", "_to_copy", "contiguous", "_local_scalar_dense", "set_", "detach_"}
)
# Taken when this module is imported, before any candidate could add its own.
TORCHS_NAMESPACES = frozenset(
    name.split("::")[0] for name in torch._C._dispatch_get_all_op_names()
) | {"prims"}
_VIEWS_WITHOUT_ALIAS_INFO = frozenset(
    {"_unsafe_view", "_reshape_alias", "is_same_size", "sym_size"}
)


@functools.cache
def operator_kind(func: Any) -> str:
    """`"create"`, `"view"`, `"move"` or `"compute"` for an ATen overload."""
    name = func._schema.name.split("::")[-1]
    if func.namespace == "prim":
        return "view"
    if func.namespace != "aten":
        # A candidate's custom operator: its kernels are counted where they are launched.
        return "compute" if func.namespace in TORCHS_NAMESPACES else "own"
    return kind_by_schema(name, func._schema.returns)


def kind_by_schema(name: str, returns: Sequence[Any]) -> str:
    """The same for an operator of ATen's, by its name and what its schema returns."""
    if name in _CREATE:
        return "create"
    if name in _MOVE:
        return "move"
    if name in _VIEWS_WITHOUT_ALIAS_INFO or (
        returns and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)
    ):
        return "view"
    return "compute"


def _is_bookkeeping(out: Any) -> bool:
    """Whether all results are single whole numbers, such as a count of batches seen."""
    leaves = [leaf for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)]
    return bool(leaves) and all(t.dim() == 0 and not t.is_floating_point() for t in leaves)


@dataclasses.dataclass(frozen=True)
class OperatorCall:
    """One operator call; `reads` and `writes` are (storage id, bytes) of its tensors.

    Attributes:
        name: Such as `"aten.relu.default"`.
        kind: See `operator_kind`.
        flops: FLOPs of products and convolutions (2 per multiply-add), else 0.
        reads: Tensors that it reads.
        writes: Tensors that it returns.
        pointwise: Whether each output element depends on one element of each input.
        elements: Elements of the outputs.
        file: Where in the watched files the call came from, if anywhere.
        line: 1-based, or 0.
    """

    name: str
    kind: str
    flops: int
    reads: tuple[tuple[int, int], ...]
    writes: tuple[tuple[int, int], ...]
    pointwise: bool
    elements: int
    file: str = ""
    line: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes read and written."""
        return sum(size for _, size in self.reads) + sum(size for _, size in self.writes)


class OperatorRecorder(TorchDispatchMode):
    """Records every operator that runs inside the `with` block.

    Args:
        files: File names whose frames tell where a call came from.
        replaced: Tells of an operator's name whether its kernels are no longer torch's: such a call
            is of the kind `"hidden"`.
    """

    def __init__(
        self, files: Iterable[str] = (), replaced: Callable[[str], bool] = lambda name: False
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: list[OperatorCall] = []
        self._replaced = replaced
        self._files = frozenset(files)
        self._keep: list[Any] = []  # ids are only unique among living storages

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kind = operator_kind(func)
        hidden = self._replaced(func.name())
        if kind == "own":
            out = self._run_own(func, args, kwargs or {})
        else:
            out = func(*args, **(kwargs or {}))
        if kind == "move" and _devices(out) == {"cpu"} and "cuda" in _devices((args, kwargs)):
            kind = "host"
        if kind == "compute" and _is_bookkeeping(out):
            kind = "view"
        if hidden:
            kind = "hidden"
        reads = self._tensors((args, kwargs or {}))
        writes = self._tensors(out)
        counter: Callable[..., int] | None = flop_registry.get(func._overloadpacket)
        flops = int(counter(*args, **(kwargs or {}), out_val=out)) if counter else 0
        file, line = self._where()
        self.calls.append(
            OperatorCall(
                str(func),
                kind,
                flops,
                reads if kind != "create" else (),
                writes,
                torch.Tag.pointwise in func.tags,
                sum(t.numel() for t in tree_leaves(out) if isinstance(t, torch.Tensor)),
                file,
                line,
            )
        )
        return out

    def _run_own(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs a candidate's custom operator, and records what it runs itself.

        A mode is off inside its own handler, and on again it would meet the same operator. So the
        operator's kernel for the device is called past the mode, with the mode on.
        """
        devices = _devices((args, kwargs))
        cuda = "cuda" in devices or (not devices and torch.cuda.is_initialized())
        key = torch._C.DispatchKey.CUDA if cuda else torch._C.DispatchKey.CPU
        with self:
            return func.redispatch(torch._C.DispatchKeySet(key), *args, **kwargs)

    def _tensors(self, tree: Any) -> tuple[tuple[int, int], ...]:
        found = {}
        for leaf in tree_leaves(tree):
            if isinstance(leaf, torch.Tensor):
                storage = leaf.untyped_storage()
                self._keep.append(storage)
                found[storage._cdata] = leaf.numel() * leaf.element_size()
        return tuple(found.items())

    def _where(self) -> tuple[str, int]:
        frame = sys._getframe(2) if self._files else None
        while frame is not None:
            if frame.f_code.co_filename in self._files:
                return frame.f_code.co_filename, frame.f_lineno
            frame = frame.f_back
        return "", 0


def _devices(tree: Any) -> set[str]:
    return {leaf.device.type for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)}
