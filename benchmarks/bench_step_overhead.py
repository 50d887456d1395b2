"""What a step costs apart from the judge: `pytest benchmarks/bench_step_overhead.py`.

The judge is replaced by one that returns the same verdict at once.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kernelgym.config import JudgeConfig
from kernelgym.edits import Replace, WriteFile, render
from kernelgym.env import KernelEnv
from kernelgym.judge.verdict import Measurement, Outcome, Provenance, Speedup, Timing, Verdict
from kernelgym.vector import KernelVectorEnv

LINES = "".join(f"x{index} = {index}\n" for index in range(300))
ACTIONS = {
    "whole_file": render(WriteFile("model_new.py", LINES)),
    "replace": render(Replace("model_new.py", "x150 = 150", "x150 = 150")),
    "refused": render(Replace("model_new.py", "x150 = 151", "")),
}
MEASURED = Measurement(1e-5, 0.9e-5, 1.1e-5, 20, "measured")
VERDICT = Verdict(
    "bench",
    Outcome.CORRECT,
    "",
    "",
    "",
    Provenance("", "", "", "audited", "strict", "default", "small"),
    timing=Timing(MEASURED, MEASURED, MEASURED, Speedup(1.0, 0.9, 1.1), Speedup(1.0, 0.9, 1.1)),
)


@dataclasses.dataclass(frozen=True)
class Task:
    id: str = "bench"
    name: str = "bench"

    def source(self, size: str) -> str:
        return LINES


@dataclasses.dataclass(frozen=True)
class Judge:
    config: JudgeConfig = dataclasses.field(default_factory=JudgeConfig)
    size: str = "small"

    def evaluate(self, task: Any, workspace: Any) -> Verdict:
        return VERDICT

    def close(self) -> None:
        pass


@pytest.mark.parametrize("kind", sorted(ACTIONS))
def test_step(benchmark: Any, kind: str) -> None:
    env = KernelEnv(Task(), judge=Judge(), max_turns=10**6)
    env.reset()
    env.step(ACTIONS["whole_file"])
    benchmark(env.step, ACTIONS[kind])
    if benchmark.enabled:
        assert benchmark.stats.stats.median < 1e-3


def test_vector_step_of_eight(benchmark: Any) -> None:
    # One worker: starting threads is the price of judging side by side, not of the environment.
    envs = KernelVectorEnv(8, task=Task(), judge=Judge(), max_turns=10**6, workers=1)
    envs.reset()
    benchmark(envs.step, [ACTIONS["whole_file"]] * 8)
    if benchmark.enabled:
        assert benchmark.stats.stats.median < 8e-3
