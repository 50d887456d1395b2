"""Entries made up from a seed: for tests and benchmarks of the board, never for the board."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Sequence
from pathlib import Path

from kernelgym.config import JudgeConfig
from kernelgym.judge.verdict import (
    Build,
    Correctness,
    Counters,
    Coverage,
    KernelCounters,
    KernelResources,
    Measurement,
    Outcome,
    Provenance,
    Speedup,
    Timing,
    Verdict,
)
from kernelgym.leaderboard.board import Board, Budget
from kernelgym.leaderboard.entry import BudgetUsed, EntryInfo, Environment, TaskResult
from kernelgym.leaderboard.loading import task_folder
from kernelgym.leaderboard.writing_entries import write_entry
from kernelgym.workspace import Workspace

__all__ = ["BOARD", "write_synthetic"]

BOARD = Board("NVIDIA H200", "audited", "strict", "default", "kernelbench", "full", Budget.TEN)
"""Where made-up entries compete by default."""

_REASONS = {
    Outcome.REJECTED: "rule.torch_compute",
    Outcome.COMPILE_ERROR: "build.error",
    Outcome.INCORRECT: "check.tail",
}
_PROTECTIONS = ("landlock", "no_network", "no_new_privileges", "no_processes", "rlimits")
_SOURCE = '''\
import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""
// made up for {task}, variant {variant}
__global__ void scale(const float* x, float* y, int n) {{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * {factor}f;
}}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
'''


def write_synthetic(
    root: Path,
    name: str,
    seed: int,
    *,
    board: Board = BOARD,
    tasks: Sequence[str] | None = None,
    skill: float = 1.5,
) -> Path:
    """Writes a made-up entry that loads, checks and scores like a real one.

    Args:
        root: The folder of entries.
        name: Name of the entry and of its folder; lower-case letters, digits and dashes.
        seed: Determines everything but the name.
        board: Where it competes.
        tasks: Tasks with a verdict; by default all of the board.
        skill: About the geometric mean of its speedups against eager.

    Returns:
        The entry's folder.
    """
    rng = random.Random(seed)
    chosen = board.tasks if tasks is None else tuple(tasks)
    results = [_result(rng, task, board, skill, seed) for task in chosen]
    info = EntryInfo(
        name=name,
        authors=("A. Uthor", "B. Uthor"),
        board=board,
        agent="made-up",
        model=f"model-{seed % 7}",
        model_date=datetime.date(2026, 1 + seed % 12, 1),
        harness="kernelgym 0.1.0",
        licence="MIT",
        links=("https://example.org/made-up",),
        budget=BudgetUsed(8 * len(chosen), 8, 1_000_000, 12.5),
        submitted=datetime.date(2026, 12, 1),
    )
    config = JudgeConfig(
        size=board.size,
        protocol=board.protocol,
        ruleset=board.ruleset,
        precision=board.precision,
    )
    versions = (("kernelgym", "0.1.0"), ("torch", "2.11.0"))
    environment = Environment(config, "run", versions, 0, "", chosen[:3], f"{seed:016x}")
    folder = root / board.slug / name
    write_entry(folder, info, results, environment)
    return folder


def _result(rng: random.Random, task: str, board: Board, skill: float, seed: int) -> TaskResult:
    variant = f"{seed}-{task_folder(task)}"
    text = _SOURCE.format(task=task, variant=variant, factor=round(rng.random(), 6))
    workspace = Workspace({"model_new.py": text})
    likely = [Outcome.CORRECT] * 16 + [Outcome.INCORRECT] * 2
    outcome = rng.choice([*likely, Outcome.COMPILE_ERROR, Outcome.REJECTED])
    verdict = _verdict(rng, task, board, outcome, workspace.hash, skill)
    return TaskResult(task, verdict, workspace.files)


def _verdict(
    rng: random.Random, task: str, board: Board, outcome: Outcome, source_hash: str, skill: float
) -> Verdict:
    provenance = Provenance(
        kernelgym="0.1.0",
        torch="2.11.0",
        device=board.device,
        protocol=board.protocol,
        ruleset=board.ruleset,
        precision=board.precision,
        size=board.size,
        mode="train",
        salt_commitment=f"{rng.getrandbits(256):064x}",
        protection="standard",
        protections=_PROTECTIONS,
    )
    if outcome is not Outcome.CORRECT:
        message = f"made up: {outcome}"
        return Verdict(task, outcome, _REASONS[outcome], message, source_hash, provenance)
    eager = math.exp(rng.gauss(math.log(5e-3), 1.0))
    gain = math.exp(rng.gauss(math.log(skill), 0.5))
    seconds = eager / gain
    kernel = KernelCounters(
        "scale",
        "own",
        1,
        seconds,
        1.0,
        (("dram_bytes_read", 1e9), ("dram_bytes_written", 1e9), ("sectors_per_request", 4.0)),
    )
    source = "modelled" if board.modelled else "measured"
    compiled = eager * rng.uniform(0.6, 1.0)
    return Verdict(
        task=task,
        outcome=outcome,
        reason="",
        message="every draw is within its budget",
        source_hash=source_hash,
        provenance=provenance,
        build=Build("fast", kernels=(KernelResources("scale", 32, 0, 0, 0, 0),)),
        correctness=Correctness(5, 5, 0.1, elements=1 << 24, deterministic=True),
        timing=Timing(
            candidate=_measurement(seconds, source),
            eager=_measurement(eager, source),
            compile=_measurement(compiled, source),
            speedup_eager=Speedup(gain, gain * 0.99, gain * 1.01),
            speedup_compile=Speedup(
                compiled / seconds, compiled / seconds * 0.99, compiled / seconds * 1.01
            ),
            light_fraction=min(1.0, 0.2 * gain),
            clocks=() if board.modelled else (("sm", 1980.0),),
        ),
        counters=Counters("cupti", kernel, (kernel,)),
        coverage=Coverage(1.0, 0.0, 0.0),
        peak_memory=2 << 30,
        peak_memory_eager=3 << 30,
        seconds=(("build", 0.5), ("check", 0.2), ("time", 0.3)),
    )


def _measurement(seconds: float, source: str) -> Measurement:
    return Measurement(seconds, seconds * 0.995, seconds * 1.005, 20, source)
