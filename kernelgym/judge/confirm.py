"""Confirming a synthesised task on a device: its eager time measured, its graph compiled in earnest.

For a machine with a GPU: what `kernelgym.judge.synthesis` models, and samples, is measured here,
for each task. The task's program runs in this process, so it must be one that was synthesised.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import torch
from torch.utils.benchmark import Timer

from kernelgym.errors import UsageError
from kernelgym.tasks.records import TaskRecord

__all__ = ["Confirmation", "confirm_record"]

_RUNS = 5
_TOLERANCE = 1e-2  # relative to the output's root mean square: TF32 may be on in either


@dataclasses.dataclass(frozen=True)
class Confirmation:
    """What a device says of a task.

    Attributes:
        record: The task, with its measured time.
        problem: Why it is unfit there, or `""`.
    """

    record: TaskRecord
    problem: str


def confirm_record(
    record: TaskRecord, device: str, size: str, min_seconds: float, max_seconds: float
) -> Confirmation:
    """Times a task's reference in eager mode, and compiles it with inductor.

    Args:
        record: The task.
        device: Where it runs: `"cuda"`, `"cuda:1"`, `"cpu"`.
        size: The preset.
        min_seconds: Least eager time.
        max_seconds: Most eager time.

    Raises:
        UsageError: There is no such device.
    """
    if torch.device(device).type == "cuda" and not torch.cuda.is_available():
        raise UsageError(f"device: expected one that torch sees, got {device!r}")
    try:
        model, inputs = _made(record, device, size)
        seconds = _seconds(model, inputs)
        problem = ""
        if not min_seconds <= seconds <= max_seconds:
            problem = f"expected {min_seconds} to {max_seconds} s, measured {seconds:.3g}"
        else:
            problem = _compiled_problem(model, inputs)
    except (RuntimeError, torch._dynamo.exc.TorchDynamoException) as error:
        return Confirmation(record, f"{type(error).__name__}: {str(error).splitlines()[0]}")
    measured = float(f"{seconds:.4g}")
    return Confirmation(dataclasses.replace(record, measured_seconds=measured), problem)


def _made(record: TaskRecord, device: str, size: str) -> tuple[torch.nn.Module, list[Any]]:
    task = record.task(record.id)
    module = task.module(size)
    with torch.random.fork_rng(), torch.device(device):
        torch.manual_seed(0)
        model: torch.nn.Module = module.Model(*module.get_init_inputs()).train()
        inputs = task.draw_inputs(size, 0, 0, device)
    return model, inputs


def _seconds(model: torch.nn.Module, inputs: list[Any]) -> float:
    """Median eager time, after a first pass that nobody counts."""
    with torch.no_grad():
        timer = Timer("model(*inputs)", globals={"model": model, "inputs": inputs})
        timer.timeit(1)
        times = sorted(timer.timeit(1).mean for _ in range(_RUNS))
    return times[_RUNS // 2]


def _compiled_problem(model: torch.nn.Module, inputs: list[Any]) -> str:
    """Why inductor's graph will not do, or `""`."""
    torch._dynamo.reset()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch's own compilers, about themselves
        expected = model(*inputs)
        got = torch.compile(model, fullgraph=True)(*inputs)
    error = (expected - got).square().mean().sqrt()
    if not bool(error <= _TOLERANCE * expected.square().mean().sqrt()):
        return "expected the outputs of eager execution from inductor, got others"
    return ""
