"""Whether torch's operators that compute nothing still run torch's own kernels.

A candidate can register a kernel of its own for `aten::clone` (`torch.library`, `TORCH_LIBRARY_IMPL`),
and it would run with that operator's licence: allowed in `forward`, on tensors that the host may not
touch. The dispatcher's own list of kernels tells.
"""

from __future__ import annotations

import functools

import torch

from kernelgym.judge.operators import kind_by_schema

__all__ = ["registered_before", "replaced", "replaced_operators"]


@functools.cache
def registered_before() -> dict[str, str]:
    """Operator → the dispatcher's list of its kernels, at the first call: before any candidate."""
    names = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")]
    return {name: torch._C._dispatch_dump(name) for name in names if _computes_nothing(name)}


def replaced(name: str) -> bool:
    """Whether an operator, such as `"aten::view.dtype"`, has got another kernel since."""
    before = registered_before().get(name)
    return before is not None and torch._C._dispatch_dump(name) != before


def replaced_operators() -> tuple[str, ...]:
    """All those that have."""
    return tuple(filter(replaced, registered_before()))


def _computes_nothing(name: str) -> bool:
    plain, _, overload = name.partition(".")
    schema = torch._C._get_schema(plain, overload)
    return kind_by_schema(schema.name.partition("::")[2], schema.returns) != "compute"
