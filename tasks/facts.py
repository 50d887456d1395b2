"""What follows from a task's program at one size, without running it: shapes, FLOPs, bytes, mode.

Everything is derived from one or two passes over fake tensors, which have shapes and no memory.
"""

from __future__ import annotations

import dataclasses
import math
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from kernelgym.errors import TaskFormatError
from kernelgym.tasks.laws import InputSpec, Law, read_law

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
        weights: `"constructed"` or `"perturbed"`: see `kernelgym.tasks.format`.
        output_rule: `"numeric"`, `"exact"`, `"near_tie_index"` or `"stochastic"`.
        slice_dim: How the task may be cut, or None where its parts depend on one another.
        unscorable: Why no check can tell a right answer from a trivial one; `""` where one can.
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


def input_specs(task: Task, size: str) -> tuple[InputSpec, ...]:
    """See `Task.input_specs`."""
    with FakeTensorMode(allow_non_fake_inputs=True):
        values = task.module(size).get_inputs()
    return _specs(task, size, values)


def facts(task: Task, size: str) -> Facts:
    """See `Task.facts`."""
    module = task.module(size)
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        values = module.get_inputs()
        specs = _specs(task, size, values)
        model = module.Model(*module.get_init_inputs())
        parameters = sum(_nbytes(parameter) for parameter in model.parameters())
        held = [*values, *model.parameters(), *model.buffers()]
        counter = FlopCounterMode(display=False, custom_mapping=_FORMULAS)
        training = _Trace(held)
        with counter, training:
            outputs = [v for v in tree_leaves(model(*values)) if isinstance(v, torch.Tensor)]
        evaluation = _Trace(held)
        with evaluation:
            model.eval()(*values)
    mode_matters = training.calls != evaluation.calls
    rule = task.judge_statement("OUTPUT", "stochastic" if training.stochastic else "numeric")
    return Facts(
        flops=counter.get_total_flops(),
        min_bytes=sum(spec.nbytes for spec in specs) + parameters + sum(map(_nbytes, outputs)),
        memory_bytes=training.peak,
        outputs=tuple(
            (tuple(value.shape), str(value.dtype).removeprefix("torch.")) for value in outputs
        ),
        mode_matters=mode_matters,
        stochastic=training.stochastic,
        weights=task.judge_statement("WEIGHTS", "constructed"),
        output_rule=rule,
        slice_dim=_slice(task, specs, outputs, mode_matters or training.stochastic),
        unscorable=task.judge_statement("UNSCORABLE", ""),
    )


def _specs(task: Task, size: str, values: list[Any]) -> tuple[InputSpec, ...]:
    names = task.file.forward_args
    if not isinstance(values, (list, tuple)) or len(values) > len(names):
        raise TaskFormatError(
            f"{task.id}: get_inputs: expected a list of at most {len(names)} values for forward "
            f"({', '.join(names)}), got {len(values)}"
        )
    laws = task.judge_statement("LAWS", {})
    specs = []
    for name, value in zip(names, values, strict=False):
        if not isinstance(value, torch.Tensor):
            specs.append(InputSpec(name, (), None, None, value))
            continue
        default = Law("mixed") if value.dtype.is_floating_point else Law("given")
        if name in laws:
            law = read_law(laws[name], task.file.values(size), f"{task.path}: LAWS[{name!r}]")
        else:
            law = default
        specs.append(InputSpec(name, tuple(value.shape), value.dtype, law))
    return tuple(specs)


def _slice(
    task: Task, specs: tuple[InputSpec, ...], outputs: list[torch.Tensor], coupled: bool
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


class _Trace(TorchDispatchMode):
    """Notes the operators of a forward pass and the most bytes that live at a time.

    Attributes:
        calls: (operator, arguments that are not tensors) in order.
        stochastic: Whether an operator drew from a generator.
        peak: Bytes alive at the worst moment, those held from the start included.
    """

    def __init__(self, held: Iterable[Any]) -> None:
        super().__init__()
        self.calls: list[tuple[str, str]] = []
        self.stochastic = False
        self.peak = 0
        self._live: dict[int, int] = {}
        self._hold(held)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        constants = [v for v in tree_leaves((args, kwargs)) if not isinstance(v, torch.Tensor)]
        self.calls.append((str(func), repr(constants)))
        self.stochastic |= torch.Tag.nondeterministic_seeded in func.tags
        self._hold(tree_leaves(result))
        return result

    def _hold(self, values: Iterable[Any]) -> None:
        for value in values:
            if isinstance(value, torch.Tensor):
                storage = value.untyped_storage()
                key = storage._cdata
                if key not in self._live:
                    self._live[key] = storage.nbytes()
                    weakref.finalize(storage, self._live.pop, key, None)
        self.peak = max(self.peak, sum(self._live.values()))


def _attention_flops(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    """QKᵀ and the product with V, each 2·S·S'·D a head."""
    *batch, queries, head_dim = query
    return 2 * math.prod(batch) * queries * key[-2] * (head_dim + value[-1])


def _rnn_layer_flops(x: Any, input_weight: Any, state_weight: Any, *_: Any, **__: Any) -> int:
    """One layer and direction over all steps: x is (steps, batch, features)."""
    steps, batch, _features = x
    return 2 * steps * batch * (math.prod(input_weight) + math.prod(state_weight))


# Operators of the CPU backend that torch's counter does not know.
_FORMULAS: dict[Any, Any] = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _attention_flops,
    torch.ops.aten.mkldnn_rnn_layer: _rnn_layer_flops,
}
