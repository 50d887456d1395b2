"""What follows from a task's program at one size, without running it: shapes, FLOPs, bytes, mode.

Everything is derived from two passes over fake tensors, one in each mode, and from what the file
states.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernelgym.errors import TaskFormatError
from kernelgym.tasks.laws import InputSpec, Law, read_law
from kernelgym.tasks.trace import fake_tensors, trace

if TYPE_CHECKING:
    from kernelgym.tasks.task import Task

__all__ = ["Facts", "Slice", "facts", "input_specs"]


@dataclasses.dataclass(frozen=True)
class Slice:
    """A dimension along which a task falls apart into independent pieces.

    Attributes:
        arguments: (argument, dimension) of every input that is cut; the others are passed whole.
        output: The output's dimension that the pieces are put together along.
    """

    arguments: tuple[tuple[str, int], ...]
    output: int


@dataclasses.dataclass(frozen=True)
class Facts:
    """What the judge knows of a task at one size. Bytes are those of the recorded dtypes.

    Attributes:
        flops: Floating-point operations of matrix products and convolutions, 2 a multiply-add;
            other work counts 0. Of a transposed convolution: by its input, as torch counts.
        min_bytes: Compulsory traffic: all inputs, all parameters and the outputs, once each.
        memory_bytes: The most that one eager forward pass holds at a time: inputs, state, live
            intermediates and outputs.
        outputs: (shape, dtype) of each output.
        mode_matters: Whether training and evaluation mode run different operators.
        stochastic: Whether a forward pass in training mode draws random numbers.
        weights: `"constructed"`: the constructor's values will do; `"perturbed"`: they leave the
            output saying little, so the audited protocol moves them with `Task.perturb`.
        output_rule: `"numeric"`, `"exact"`, `"near_tie_index"` or `"stochastic"`.
        slice_dim: How the task may be cut, or None where its parts depend on one another.
        unscorable: Why no check can tell a right answer from a trivial one; `""` where one can.
        convolution_flops: Those of `flops` that are convolutions'.
    """

    flops: int
    min_bytes: int
    memory_bytes: int
    outputs: tuple[tuple[tuple[int, ...], str], ...]
    mode_matters: bool
    stochastic: bool
    weights: str
    output_rule: str
    slice_dim: Slice | None
    unscorable: str
    convolution_flops: int = 0


@functools.lru_cache(maxsize=1024)
def input_specs(task: Task, size: str) -> tuple[InputSpec, ...]:
    """See `Task.input_specs`."""
    with _blame(task, "get_inputs"), fake_tensors(), _PlainDraws() as plain:
        values = task.module(size).get_inputs()
    return _specs(task, size, values, plain)


@functools.lru_cache(maxsize=1024)
def facts(task: Task, size: str) -> Facts:
    """See `Task.facts`."""
    specs = input_specs(task, size)
    with _blame(task, "Model"), fake_tensors():
        module = task.module(size)
        values = module.get_inputs()
        model = module.Model(*module.get_init_inputs())
        parameters = sum(_nbytes(parameter) for parameter in model.parameters())
        training = trace(model.train(), values)
        evaluation = trace(model.eval(), values)
    outputs = training.outputs
    mode_matters = training.calls != evaluation.calls
    return Facts(
        flops=training.flops,
        min_bytes=sum(spec.nbytes for spec in specs) + parameters + sum(map(_nbytes, outputs)),
        memory_bytes=training.peak,
        outputs=tuple((tuple(v.shape), str(v.dtype).removeprefix("torch.")) for v in outputs),
        mode_matters=mode_matters,
        stochastic=training.stochastic,
        weights=task.file.weights_rule,
        output_rule=_output_rule(task, outputs, training.stochastic),
        slice_dim=_slice(task, specs, outputs, mode_matters or training.stochastic),
        unscorable=task.judge_statement("UNSCORABLE", ""),
        convolution_flops=training.convolution_flops,
    )


def _output_rule(task: Task, outputs: tuple[torch.Tensor, ...], stochastic: bool) -> str:
    """The file's word; else by what the program does and returns."""
    default = "numeric"
    if stochastic:
        default = "stochastic"
    elif any(not value.dtype.is_floating_point for value in outputs):
        default = "exact"
    rule: str = task.judge_statement("OUTPUT", default)
    return rule


@contextlib.contextmanager
def _blame(task: Task, part: str) -> Iterator[None]:
    """Says which task and part an exception comes from: it may be anyone's code."""
    try:
        yield
    except Exception as error:
        raise TaskFormatError(
            f"{task.path}: {part}: expected to run on tensors without values, "
            f"got {type(error).__name__}: {error}"
        ) from error


class _PlainDraws(TorchDispatchMode):  # type: ignore[no-untyped-call, unused-ignore]
    """Notes which tensors are nothing but `torch.rand` or `torch.randn`."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call, unused-ignore]
        self._storages: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and func.overloadpacket is not torch.ops.aten.detach:
            storage = result.untyped_storage()._cdata
            if func.overloadpacket in (torch.ops.aten.rand, torch.ops.aten.randn):
                self._storages.add(storage)
            else:  # changed in place, or a view
                self._storages.discard(storage)
        return result

    def __contains__(self, value: torch.Tensor) -> bool:
        return value.untyped_storage()._cdata in self._storages


def _specs(task: Task, size: str, values: list[Any], plain: _PlainDraws) -> tuple[InputSpec, ...]:
    names = task.file.forward_args
    if not isinstance(values, (list, tuple)) or len(values) > len(names):
        raise TaskFormatError(
            f"{task.id}: get_inputs: expected a list of at most {len(names)} values for forward "
            f"({', '.join(names)}), got "
            f"{len(values) if isinstance(values, (list, tuple)) else type(values).__name__}"
        )
    laws = task.judge_statement("LAWS", {})
    specs = []
    for name, value in zip(names, values, strict=False):
        if not isinstance(value, torch.Tensor):
            specs.append(InputSpec(name, (), None, None, value))
            continue
        if name in laws:
            law = read_law(laws[name], task.file.values(size), f"{task.path}: LAWS[{name!r}]")
        elif value.dtype.is_floating_point and (task.level > 0 or value in plain):
            law = Law("mixed")
        else:
            # What a stranger's program computes may have a domain, such as that of a logarithm.
            law = Law("given")
        specs.append(InputSpec(name, tuple(value.shape), value.dtype, law))
    return tuple(specs)


def _slice(
    task: Task, specs: tuple[InputSpec, ...], outputs: tuple[torch.Tensor, ...], coupled: bool
) -> Slice | None:
    """The file's word; else the batch dimension of a catalogued task with one tensor input.

    The rule of thumb is held against numbers by a test for every task of the catalogue; nobody
    tests a task from elsewhere, so it is not cut unless its file says so.
    """
    tensors = [spec for spec in specs if spec.dtype is not None]
    statement = task.judge_statement("SLICE", "derive")
    if isinstance(statement, dict):
        cut = dict(statement)
        output = cut.pop("output")
        return Slice(tuple(cut.items()), output)
    if isinstance(statement, int):
        return Slice(tuple((spec.name, statement) for spec in tensors), statement)
    if statement is None or coupled or task.level == 0 or len(tensors) != 1 or len(outputs) != 1:
        return None
    shape, result = tensors[0].shape, outputs[0].shape
    if not shape or not result or shape[0] != result[0]:
        return None
    return Slice(((tensors[0].name, 0),), 0)


def _nbytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()
