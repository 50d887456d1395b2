"""How much a judgement's times differ from one run to the next, by judging a known kernel again.

A judgement sees how its batches scatter, not what is the same for all of them: where memory came to
lie, how warm the card was. So a ReLU of several sizes is judged again and again, by several graders
one after another, each a process of its own, and each time with a new process for the candidate.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
import tempfile
from collections.abc import Sequence
from multiprocessing.connection import Connection
from statistics import fmean, stdev
from typing import Any

from kernelgym.config import JudgeConfig
from kernelgym.errors import EnvironmentFault, KernelGymError
from kernelgym.judge.calibration import Run
from kernelgym.judge.crew import Crew, Lost
from kernelgym.judge.timing import SpreadPoint

__all__ = ["ELEMENTS", "Judged", "judge_again", "relu_candidate", "relu_task", "spread_points"]

ELEMENTS = (2**20, 2**23, 2**25, 2**28)
"""Sizes of the known kernel: 8 MB to 2 GB of traffic."""

# Some runs cannot show that nothing differs between more of them.
_LEAST = 2e-4
_FEWEST_RUNS = 4

_TASK = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.rand(256, {columns})]


def get_init_inputs():
    return []
"""

_CANDIDATE = '''
import torch
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
__device__ float positive(float v) {{ return v > 0.0f ? v : 0.0f; }}
__global__ void known_relu(const float4* x, float4* y, long n) {{
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    {delay}
    if (i < n) {{
        float4 v = x[i];
        y[i] = make_float4(positive(v.x), positive(v.y), positive(v.z), positive(v.w));
    }}
}}
torch::Tensor run(torch::Tensor x) {{
    auto y = torch::empty_like(x);
    long n = x.numel() / 4;
    known_relu<<<(n + 255) / 256, 256>>>((const float4*)x.data_ptr<float>(),
                                         (float4*)y.data_ptr<float>(), n);
    return y;
}}
"""
ext = load_inline(name="known_relu", cpp_sources="torch::Tensor run(torch::Tensor x);",
                  cuda_sources=source, functions=["run"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.run(x)
'''


@dataclasses.dataclass(frozen=True)
class Judged:
    """What one grader is asked for: so many judgements of each size, on a GPU by its index."""

    runs: int
    elements: tuple[int, ...]
    device: int


def relu_task(elements: int) -> str:
    """A task file: ReLU of so many numbers, a multiple of 1024."""
    return _TASK.format(columns=elements // 256)


def relu_candidate(delay: str = "") -> str:
    """The known kernel, with statements of CUDA C++ at its start."""
    return _CANDIDATE.format(delay=delay)


def judge_again(
    graders: int,
    runs: int,
    device: int,
    elements: Sequence[int] = ELEMENTS,
    until: float | None = None,
) -> tuple[list[Run], list[str]]:
    """Judges the known kernel `graders * runs` times at each size.

    Args:
        graders: Processes that judge, one after another.
        runs: Judgements of each.
        device: The GPU's index.
        elements: The sizes.
        until: Time of the monotonic clock after which nothing more is judged.

    Returns:
        The runs, and what went wrong.
    """
    found: list[Run] = []
    problems: list[str] = []

    def done(job: Judged, result: list[Run] | str | Lost, alone: bool) -> bool:
        if isinstance(result, list):
            found.extend(result)
        else:
            problems.append(result.why if isinstance(result, Lost) else result)
        return False

    job = Judged(runs, tuple(elements), device)
    for number in range(graders):
        with Crew[Judged](serve, (), 1) as crew:
            if crew.run([job], done, until=until):
                problems.append(f"the time limit ended it: {number} of {graders} graders are done")
                break
    return found, problems


def serve(connection: Connection) -> None:
    """A grader's main function: answers a `Judged` with its runs, or with what went wrong."""
    while (job := connection.recv()) is not None:
        try:
            connection.send(_judged(job))
        except KernelGymError as error:
            connection.send(f"{type(error).__name__}: {error}")


def spread_points(runs: Sequence[Run]) -> tuple[SpreadPoint, ...]:
    """Relative standard deviations by duration; sizes with too few runs are left out."""
    points = []
    for elements in sorted({run.elements for run in runs}):
        seconds = [run.seconds for run in runs if run.elements == elements]
        speedups = [run.speedup for run in runs if run.elements == elements]
        if len(seconds) < _FEWEST_RUNS:
            continue
        points.append(
            SpreadPoint(
                float(f"{fmean(seconds):.4g}"),
                float(f"{max(stdev(seconds) / fmean(seconds), _LEAST):.3g}"),
                float(f"{max(stdev(speedups) / fmean(speedups), _LEAST):.3g}"),
            )
        )
    return tuple(sorted(points))


def _judged(job: Judged) -> list[Run]:
    from kernelgym.judge.judge import Judge

    config = JudgeConfig(
        device=f"cuda:{job.device}", size="full", draws=1, counters=False, baselines=("eager",)
    )
    found = []
    with tempfile.TemporaryDirectory() as folder, Judge(config) as judge:
        files = {}
        for elements in job.elements:
            files[elements] = pathlib.Path(folder, f"relu_{elements}.py")
            files[elements].write_text(relu_task(elements))
        judged = functools.partial(_run, judge, relu_candidate())
        judged(files[job.elements[0]], job.elements[0])  # starts the service
        for _ in range(job.runs):
            found += [judged(files[elements], elements) for elements in job.elements]
    return found


def _run(judge: Any, source: str, task: os.PathLike[str], elements: int) -> Run:
    verdict = judge.evaluate(str(task), source)
    timing = verdict.timing
    if timing is None or timing.speedup_eager is None:
        raise EnvironmentFault(
            f"expected the known kernel to be measured, got {verdict.outcome}: {verdict.message}"
        )
    return Run(elements, timing.candidate.median, timing.speedup_eager.value)
