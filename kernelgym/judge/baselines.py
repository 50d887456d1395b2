"""Modelled times of the reference, for the emulator: eager, and as `torch.compile` would fuse it.

The reference's operators are recorded on fake tensors, which hold no data. `eager` is the sum over
operators of a launch and the roofline; `compile` the same after fusing chains of pointwise
operators into one kernel each.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch._subclasses.fake_tensor import FakeTensorMode

from kernelgym.judge.operators import OperatorCall, OperatorRecorder
from kernelgym.judge.physics import DeviceModel, operator_seconds
from kernelgym.tasks import Task

__all__ = ["compile_seconds", "eager_seconds", "fuse_pointwise", "reference_operators"]


def reference_operators(task: Task, size: str, *, train: bool) -> tuple[OperatorCall, ...]:
    """The operators of one forward of the reference, views and creations left out.

    Args:
        task: The task.
        size: The preset.
        train: Whether the module is in train mode.
    """
    import torch

    module = task.module(size)
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        model = module.Model(*module.get_init_inputs()).train(train)
        inputs = module.get_inputs()
        with OperatorRecorder() as recorder:
            model(*inputs)
    return tuple(call for call in recorder.calls if call.kind in ("compute", "move"))


def eager_seconds(device: DeviceModel, calls: Sequence[OperatorCall]) -> float:
    """Modelled seconds of the operators run one by one."""
    return sum(operator_seconds(device, call.flops, call.nbytes) for call in calls)


def compile_seconds(device: DeviceModel, calls: Sequence[OperatorCall]) -> float:
    """Modelled seconds with pointwise chains fused."""
    total = 0.0
    for group in fuse_pointwise(calls):
        nbytes = group[0].nbytes if len(group) == 1 else _external_bytes(group, calls)
        total += operator_seconds(device, sum(call.flops for call in group), nbytes)
    return total


def fuse_pointwise(calls: Sequence[OperatorCall]) -> list[list[OperatorCall]]:
    """Groups neighbouring pointwise operators of equal extent that share a tensor.

    One feeds the other, or both read the same; a compiler fuses either.
    """
    groups: list[list[OperatorCall]] = []
    for call in calls:
        last = groups[-1] if groups else None
        if last is not None and call.pointwise and all(member.pointwise for member in last):
            held = {s for member in last for s, _ in (*member.writes, *member.reads)}
            if call.elements == last[-1].elements and any(s in held for s, _ in call.reads):
                last.append(call)
                continue
        groups.append([call])
    return groups


def _external_bytes(group: Sequence[OperatorCall], calls: Sequence[OperatorCall]) -> int:
    """Bytes that a fused group reads from outside and leaves for outside."""
    made = {storage for call in group for storage, _ in call.writes}
    read = {s: size for call in group for s, size in call.reads if s not in made}
    last = group[-1]
    position = list(map(id, calls)).index(id(last))
    needed = {s for call in calls[position + 1 :] for s, _ in call.reads}
    needed |= {s for s, _ in last.writes}
    written = {s: size for call in group for s, size in call.writes if s in needed}
    return sum(read.values()) + sum(written.values())
