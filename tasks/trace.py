"""One forward pass over fake tensors: which operators ran, their FLOPs, the bytes alive at a time.

Fake tensors have a shape and no memory, so a pass at full size takes milliseconds and allocates
nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import warnings
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

__all__ = ["Trace", "fake_tensors", "trace"]


@dataclasses.dataclass(frozen=True)
class Trace:
    """What one forward pass did.

    Attributes:
        outputs: Its output tensors (fake).
        calls: (operator, arguments that are not tensors) in order.
        stochastic: Whether an operator drew from a generator.
        flops: Operations of matrix products and convolutions, 2 a multiply-add.
        peak: The most bytes alive at a time, those given from the start included.
        convolution_flops: Those of `flops` that are convolutions'.
    """

    outputs: tuple[torch.Tensor, ...]
    calls: tuple[tuple[str, str], ...]
    stochastic: bool
    flops: int
    peak: int
    convolution_flops: int = 0


@contextlib.contextmanager
def fake_tensors() -> Iterator[None]:
    """Makes tensors that have a shape and no memory."""
    with warnings.catch_warnings(), FakeTensorMode(allow_non_fake_inputs=True):
        # Copying a module, as torch's own transformer layers do, copies the empty storages too.
        warnings.filterwarnings("ignore", message="Accessing the data pointer of FakeTensor")
        yield


def trace(model: torch.nn.Module, values: Sequence[Any]) -> Trace:
    """Runs a model once on fake inputs.

    Args:
        model: A module made inside `fake_tensors()`, in the mode that is asked about.
        values: The positional arguments of its `forward`, made there too.
    """
    recorder = _Recorder([*values, *model.parameters(), *model.buffers()])
    counter = FlopCounterMode(display=False, custom_mapping=_FORMULAS)
    with torch.no_grad(), _no_fused_layers(), counter, recorder, _WholeSequences():
        result = model(*values)
    return Trace(
        outputs=tuple(v for v in tree_leaves(result) if isinstance(v, torch.Tensor)),
        calls=tuple(recorder.calls),
        stochastic=recorder.stochastic,
        flops=counter.get_total_flops(),
        peak=recorder.peak,
        convolution_flops=sum(
            flops
            for operator, flops in counter.get_flop_counts().get("Global", {}).items()
            if "convolution" in str(operator)
        ),
    )


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call, unused-ignore]
    """Notes operators and the storages alive after each."""

    def __init__(self, held: Iterable[Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call, unused-ignore]
        self.calls: list[tuple[str, str]] = []
        self.stochastic = False
        self.peak = 0
        self._live: dict[int, int] = {}
        self._bytes = 0
        self._hold(held)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func.namespace != "prim":  # questions about a tensor, such as its device
            constants = [v for v in tree_leaves((args, kwargs)) if not isinstance(v, torch.Tensor)]
            self.calls.append((str(func), repr(constants)))
        self.stochastic |= _draws(func, args, kwargs)
        self._hold(tree_leaves(result))
        return result

    def _hold(self, values: Iterable[Any]) -> None:
        for value in values:
            if isinstance(value, torch.Tensor):
                storage = value.untyped_storage()
                key = storage._cdata
                if key not in self._live:
                    self._live[key] = storage.nbytes()
                    self._bytes += storage.nbytes()
                    weakref.finalize(storage, self._release, key)
        self.peak = max(self.peak, self._bytes)

    def _release(self, key: int) -> None:
        self._bytes -= self._live.pop(key)


def _draws(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether an operator takes random numbers; attention does so only for its dropout."""
    if torch.Tag.nondeterministic_seeded not in func.tags:
        return False
    for position, argument in enumerate(func._schema.arguments):
        if argument.name == "dropout_p":
            given = args[position] if position < len(args) else argument.default_value
            return bool(kwargs.get("dropout_p", given) != 0)
    return True


class _WholeSequences(TorchFunctionMode):
    """Replaces torch's recurrent layers, which may loop over steps, by products over all of them.

    Shapes and FLOPs are the same, and so is the memory but for one step's gates.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        recurrent = func in (torch.gru, torch.lstm, torch.rnn_tanh, torch.rnn_relu)
        if recurrent and not isinstance(args[2], torch.Tensor):  # else a packed sequence
            return _recurrent_layers(*args)
        return func(*args, **(kwargs or {}))


def _recurrent_layers(
    x: torch.Tensor,
    state: Any,
    weights: Sequence[torch.Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[torch.Tensor, ...]:
    """Takes the arguments of `torch.gru` and its like."""
    directions = 2 if bidirectional else 1
    count = len(weights) // (num_layers * directions)
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            first = (layer * directions + direction) * count
            input_weight, state_weight = weights[first], weights[first + 1]
            gates = F.linear(x, input_weight)
            hidden = x.new_empty(*x.shape[:-1], state_weight.shape[1])
            gates += F.linear(hidden, state_weight)
            # An LSTM with a projection has a fifth matrix.
            outputs.append(F.linear(hidden, weights[first + 4]) if count == 5 else hidden)
        x = torch.cat(outputs, -1)
        if layer < num_layers - 1:
            x = F.dropout(x, dropout, train)
    return (x, *(s.clone() for s in (state if isinstance(state, (tuple, list)) else (state,))))


@contextlib.contextmanager
def _no_fused_layers() -> Iterator[None]:
    """Keeps torch from running a transformer layer as one operator in evaluation mode only."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def _attention_flops(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    """Products of queries and keys, and of the result and the values, for each head."""
    *batch, queries, head_dim = query
    return int(2 * math.prod(batch) * queries * key[-2] * (head_dim + value[-1]))


# An operator of the CPU backend that torch's counter does not know.
_FORMULAS: dict[Any, Any] = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _attention_flops,
}
