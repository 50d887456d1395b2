"""From the text of a task to a graph of ATen operators, through fake tensors: nothing is computed.

The text is run, so it must be trusted; tasks are.
"""

from __future__ import annotations

import dataclasses
import re
import types
from typing import Any

import torch
from torch import fx
from torch._decomp import core_aten_decompositions, get_decompositions
from torch.func import functional_call, functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten

from kernelgym.errors import TaskFormatError
from kernelgym.tasks.trace import fake_tensors

__all__ = ["Traced", "read_source", "trace"]

_aten = torch.ops.aten
# Beyond the core set: what has no kernel template of its own here is taken apart.
_TAKEN_APART = (
    _aten.addmm,
    _aten.addmv,
    _aten.baddbmm,
    _aten._scaled_dot_product_flash_attention_for_cpu,
    _aten.linalg_vector_norm,
    _aten.native_batch_norm,
    _aten._native_batch_norm_legit,
    _aten._native_batch_norm_legit_no_training,
    _aten._native_batch_norm_legit_functional,
    _aten.native_group_norm,
    _aten.native_layer_norm,
    _aten._log_softmax,
    _aten._softmax,
    _aten._unsafe_view,
    _aten.split_with_sizes,
    _aten.adaptive_avg_pool1d,
    _aten.var,
    _aten.std,
    _aten.elu,
    _aten.leaky_relu,
    _aten.hardtanh,
    _aten.native_dropout,
    _aten.mean,
    _aten._adaptive_avg_pool2d,
    _aten._adaptive_avg_pool3d,
)
_KEPT = ("mean", "var_mean", "avg_pool", "max_pool")


@dataclasses.dataclass(frozen=True)
class Traced:
    """One forward pass.

    Attributes:
        graph: ATen operators; node.meta["val"] holds fake tensors.
        sources: For each placeholder in order, the Python expression that gives it in `forward`.
        constants: The same for tensors that the graph holds by attribute.
        parameters: Names of the arguments of `forward`.
        several: Whether it returns a tuple or list rather than one tensor.
    """

    graph: fx.Graph
    sources: tuple[str, ...]
    constants: dict[str, str]
    parameters: tuple[str, ...]
    several: bool


def read_source(task: str) -> str:
    """The reference program in an observation's `task` text; a text without a fence is the program.

    Raises:
        TaskFormatError: There is no class Model in it.
    """
    match = re.search(r"^(`{3,})python[^\n]*\n(.*?)^\1", task, re.DOTALL | re.MULTILINE)
    source = match.group(2) if match else task
    if not re.search(r"^class Model\b", source, re.MULTILINE):
        raise TaskFormatError("task: expected a program with a class Model, got none")
    return source


def trace(source: str, training: bool) -> Traced:
    """Traces `Model.forward` on the shapes of `get_inputs`.

    Args:
        source: A program in KernelBench's form.
        training: Whether the model is in training mode.

    Raises:
        TaskFormatError: The program fails, or asks for values while it is traced.
    """
    module = types.ModuleType("reference")
    try:
        with fake_tensors(), torch.no_grad():
            exec(compile(source, "reference.py", "exec"), module.__dict__)
            model = module.Model(*module.get_init_inputs()).train(training)
            inputs = list(module.get_inputs())
            return _trace(model, inputs)
    except Exception as error:
        raise TaskFormatError(f"reference.py: cannot be traced: {error!r}") from error


def _trace(model: torch.nn.Module, inputs: list[Any]) -> Traced:
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    names = _forward_parameters(model)[: len(inputs)]
    tensors = [k for k, value in enumerate(inputs) if isinstance(value, torch.Tensor)]
    several = False

    def forward(*flat: torch.Tensor) -> tuple[torch.Tensor, ...]:
        nonlocal several
        arguments = list(inputs)
        for position, tensor in zip(tensors, flat, strict=False):
            arguments[position] = tensor
        held = dict(zip(state, flat[len(tensors) :], strict=True))
        result = functional_call(model, held, tuple(arguments))
        several = not isinstance(result, torch.Tensor)
        return tuple(v for v in tree_flatten(result)[0] if isinstance(v, torch.Tensor))

    flat = [*(inputs[k] for k in tensors), *state.values()]
    table = {
        op: rule
        for op, rule in {**core_aten_decompositions(), **get_decompositions(_TAKEN_APART)}.items()
        if not op.name().removeprefix("aten::").startswith(_KEPT)
    }
    made = make_fx(functionalize(forward, remove="mutations"), decomposition_table=table)(*flat)
    made.graph.eliminate_dead_code()
    sources = [names[k] for k in tensors] + [_expression(name) for name in state]
    return Traced(
        graph=made.graph,
        sources=tuple(sources),
        constants=_constants(made, model),
        parameters=tuple(names),
        several=several,
    )


def _forward_parameters(model: torch.nn.Module) -> list[str]:
    code = type(model).forward.__code__
    return list(code.co_varnames[1 : code.co_argcount])


def _expression(path: str) -> str:
    """`"blocks.0.weight"` → `"self.blocks[0].weight"`."""
    return "self" + "".join(f"[{p}]" if p.isdigit() else f".{p}" for p in path.split("."))


def _constants(made: fx.GraphModule, model: torch.nn.Module) -> dict[str, str]:
    """Tensors that are plain attributes of a module: graph attribute → Python expression."""
    found: dict[int, str] = {}
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, torch.Tensor):
                found[id(value)] = _expression(f"{path}.{name}" if path else name)
    attributes = {str(n.target) for n in made.graph.nodes if n.op == "get_attr"}
    return {a: found[id(getattr(made, a))] for a in attributes if id(getattr(made, a)) in found}
