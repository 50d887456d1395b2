"""The grader's own side of a judgement: reference, weights, inputs and what the outputs should be."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psutil
import torch
from torch.utils._pytree import tree_leaves

from kernelgym.config import JudgeConfig
from kernelgym.errors import ReferenceFault
from kernelgym.judge.correctness import Expected
from kernelgym.judge.device import arithmetic
from kernelgym.judge.salt import Salt
from kernelgym.judge.tolerances import fixed_tolerance
from kernelgym.tasks import Task

__all__ = ["DTYPES", "OutputSpec", "Reference", "train_mode"]

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
"""Floating type of the precision classes that are not of fp32."""
_UPSTREAM_SEED = 42
# A forward pass that holds more than this is run in slices, where the task falls apart into some.
_PASS_BYTES = 8 * 2**30
_COPIES = 4
_GENERATOR = threading.RLock()


@dataclasses.dataclass(frozen=True)
class OutputSpec:
    """What one output is, apart from its values."""

    shape: tuple[int, ...]
    dtype: torch.dtype


class Reference:
    """The reference of one task at one size, under one configuration and salt.

    Attributes:
        init_args: What both models are constructed with.
        state: The weights and buffers that every run starts from.
        seed: Seeds the construction, on both sides.
        train: Whether both run in train mode.
        dtype: Floating type of inputs and weights.
        device: Where all of it lies.

    Raises:
        ReferenceFault: The task's program could not be run.
    """

    def __init__(
        self, task: Task, size: str, config: JudgeConfig, salt: Salt, device: torch.device
    ) -> None:
        self.task = task
        self.size = size
        self.facts = task.facts(size)
        _expect_room(task, self.facts.memory_bytes, device)
        self.specs = task.input_specs(size)
        self.upstream = config.protocol != "audited"
        self.train = train_mode(config.protocol, task, self.facts.output_rule)
        self.dtype = DTYPES.get(config.precision, torch.float32)
        self.seed = _UPSTREAM_SEED if self.upstream else salt.seed("weights")
        self._config = config
        self._salt = salt
        self.device = device
        try:
            self._module = module = task.module(size)
            with _seeded(self.seed):
                self.init_args = tuple(module.get_init_inputs())
                model = module.Model(*self.init_args)
        except Exception as error:
            raise ReferenceFault(f"{task.id}: the reference failed: {error}") from error
        if not self.upstream and self.facts.weights == "perturbed":
            task.perturb(model, size, salt.seed("perturbed weights"))
        self._model = model.to(dtype=self.dtype, device=device).train(self.train)
        self.state: dict[str, torch.Tensor] = {
            key: value.detach().clone() for key, value in self._model.state_dict().items()
        }
        self._oracle = copy.deepcopy(self._model).double()
        self._output_specs: tuple[OutputSpec, ...] | None = None

    @property
    def keeps_construction(self) -> bool:
        """Whether the weights are those that the seeded constructor makes."""
        return self.upstream or self.facts.weights == "constructed"

    def run_seed(self, draw: int) -> int:
        """Seeds the random numbers that a forward may draw, on both sides."""
        return _UPSTREAM_SEED + draw if self.upstream else self._salt.seed(f"run:{draw}")

    def inputs(self, draw: int) -> list[Any]:
        """The inputs of one draw; tensors are fresh each time."""
        if not self.upstream:
            seed = self._salt.seed("inputs")
            return self.task.draw_inputs(self.size, seed, draw, self.device, self.dtype)
        with _seeded(_UPSTREAM_SEED + draw), self.device:
            values = list(self._module.get_inputs())
        return [
            value.to(self.dtype)
            if isinstance(value, torch.Tensor) and value.is_floating_point()
            else value
            for value in values
        ]

    def outputs(self, inputs: Sequence[Any], draw: int) -> list[torch.Tensor]:
        """The reference's own outputs for these inputs, in its own precision.

        Raises:
            ReferenceFault: The reference failed.
        """
        return self._forward(self._model, inputs, draw)

    def output_specs(self) -> tuple[OutputSpec, ...]:
        """What the outputs are, found by a run on inputs that no candidate gets.

        Raises:
            ReferenceFault: The reference failed.
        """
        if self._output_specs is None:
            draw = self._config.draws
            self._output_specs = tuple(
                OutputSpec(
                    tuple(value.shape), self.dtype if value.is_floating_point() else value.dtype
                )
                for value in self.outputs(self.inputs(draw), draw)
            )
        return self._output_specs

    def call(self, inputs: Sequence[Any], *, compiled: bool = False) -> Callable[[], Any]:
        """The reference's forward as it is timed: no gradients, nothing reloaded or copied.

        The precision class is the caller's to set: that takes longer than a small kernel.

        Args:
            inputs: Its arguments; tensors are read anew by each call.
            compiled: Whether it goes through `torch.compile`, at its first call (seconds).
        """
        self._model.load_state_dict(self.state)
        # A compiled module keeps the original one's weights.
        model = torch.compile(self._model) if compiled else self._model

        def forward() -> Any:
            with torch.no_grad():
                return model(*inputs)

        return forward

    def expected(self, inputs: Sequence[Any], draw: int) -> tuple[Expected, ...]:
        """What each output should be for these inputs.

        Raises:
            ReferenceFault: The reference failed, or gave something that is not finite.
        """
        own = self.outputs(inputs, draw)
        tolerance = fixed_tolerance(self._config.protocol, self._config.precision)
        if tolerance is not None:
            return tuple(Expected.from_tolerance(value, tolerance) for value in own)
        if self.facts.output_rule == "stochastic":
            # An fp64 run would draw other random numbers; the reference's own output stands in.
            oracle = own
        else:
            oracle = self._oracle_outputs(inputs, draw)
        if self.facts.output_rule == "near_tie_index":
            scores = next(_double(v) for v in inputs if isinstance(v, torch.Tensor))
            return tuple(Expected.from_index(value, scores) for value in oracle)
        return tuple(
            Expected.from_oracle(exact, value, self._config.precision)
            for exact, value in zip(oracle, own, strict=True)
        )

    def _oracle_outputs(self, inputs: Sequence[Any], draw: int) -> list[torch.Tensor]:
        """The outputs in fp64, in slices where they take much memory and the task allows it."""
        cut = self.facts.slice_dim
        pieces = math.ceil(self.facts.memory_bytes / _PASS_BYTES)
        if cut is None or pieces == 1:
            return self._forward(self._oracle, [_double(value) for value in inputs], draw)
        dims = dict(cut.arguments)
        names = [spec.name for spec in self.specs]
        extent = next(v.shape[dims[n]] for n, v in zip(names, inputs, strict=True) if n in dims)
        step = math.ceil(extent / pieces)
        parts = []
        for start in range(0, extent, step):
            length = min(step, extent - start)
            values = [
                _double(v.narrow(dims[n], start, length) if n in dims else v)
                for n, v in zip(names, inputs, strict=True)
            ]
            parts.append(self._forward(self._oracle, values, draw))
        return [torch.cat(pieces_of_one, cut.output) for pieces_of_one in zip(*parts, strict=True)]

    def _forward(
        self, model: torch.nn.Module, inputs: Sequence[Any], draw: int
    ) -> list[torch.Tensor]:
        model.load_state_dict(self.state)
        # The reference may write into its inputs; those in fp64 were made for this call alone.
        made = model is self._oracle
        arguments = [v.clone() if isinstance(v, torch.Tensor) and not made else v for v in inputs]
        try:
            with _seeded(self.run_seed(draw)), torch.no_grad(), arithmetic(self._config.precision):
                result = model(*arguments)
        except Exception as error:
            raise ReferenceFault(f"{self.task.id}: the reference failed: {error}") from error
        return [value for value in tree_leaves(result) if isinstance(value, torch.Tensor)]


def _expect_room(task: Task, nbytes: int, device: torch.device) -> None:
    """Refuses a task that does not fit into this machine's memory, before anything is allocated.

    Raises:
        ReferenceFault: It does not; the message says how much it needs.
    """
    # The pass itself, the oracle's in fp64, and the copies that both processes share.
    needed = _COPIES * nbytes
    available = psutil.virtual_memory().available
    if device.type == "cpu" and needed > available:
        raise ReferenceFault(
            f"{task.id}: judging it at this size takes about {needed / 1e9:.1f} GB of memory, "
            f"{available / 1e9:.1f} GB are available: choose a smaller size"
        )


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seeds torch's default generators for a block, and puts them back as they were.

    There is one a device for the whole process, so judgements in other threads wait.
    """
    devices = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
    with _GENERATOR, torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


def train_mode(protocol: str, task: Task, output_rule: str) -> bool:
    """KernelBench runs in train mode, the paper in eval mode.

    `audited` follows KernelBench, but where train mode draws random numbers (dropout) no candidate
    could agree with the reference, so it runs in eval mode there, and where the task says so.
    """
    if protocol == "audited":
        stated = task.judge_statement("MODE", "train")
        return output_rule != "stochastic" and bool(stated == "train")
    return protocol == "kernelbench"


def _double(value: Any) -> Any:
    """A copy, in fp64 where it is of floating point."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.to(torch.float64 if value.is_floating_point() else value.dtype, copy=True)
