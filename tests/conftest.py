"""Fakes that stand in for tasks and the judge where neither is what a test is about."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from kernelgym.config import JudgeConfig
from kernelgym.env import KernelEnv
from kernelgym.errors import EnvironmentFault
from kernelgym.judge.verdict import (
    Counters,
    Coverage,
    Diagnostic,
    KernelCounters,
    Measurement,
    Outcome,
    Provenance,
    Speedup,
    Timing,
    Verdict,
)

SOURCE = """\
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super(Model, self).__init__()

    def forward(self, x):
        return torch.relu(x)


batch_size = 16


def get_inputs():
    return [torch.rand(batch_size, 1024)]


def get_init_inputs():
    return []
"""

PROVENANCE = Provenance("0", "0", "emulator", "audited", "strict", "default", "small")


@dataclasses.dataclass(frozen=True)
class FakeTask:
    id: str = "L1/19"
    name: str = "ReLU"

    def source(self, size: str) -> str:
        return f"# {self.id} at {size}\n{SOURCE}"


def verdict_of(
    outcome: Outcome = Outcome.CORRECT,
    eager: tuple[float, float, float] | None = None,
    compiled: tuple[float, float, float] | None = None,
    **fields: Any,
) -> Verdict:
    """A verdict with the speedups (value, low, high) that a test is about."""
    if eager is not None:
        candidate = Measurement(1e-5, 0.9e-5, 1.1e-5, 0, "modelled")
        fields["timing"] = Timing(
            candidate,
            eager=Measurement(1e-5 * eager[0], 1e-6, 1.0, 0, "modelled"),
            compile=Measurement(2e-5, 1e-5, 3e-5, 0, "modelled") if compiled else None,
            speedup_eager=Speedup(*eager),
            speedup_compile=Speedup(*compiled) if compiled else None,
            light_fraction=0.75,
        )
    return Verdict(
        **{
            "task": "L1/19",
            "outcome": outcome,
            "reason": "" if outcome is Outcome.CORRECT else f"test.{outcome}",
            "message": "",
            "source_hash": "00",
            "provenance": PROVENANCE,
            **fields,
        }
    )


def counted(**values: float) -> Counters:
    """Counters of one kernel that takes 2 us."""
    pairs = tuple(values.items())
    kernel = KernelCounters("relu", "own", 1, 2e-6, 1.0, pairs)
    return Counters("emulated", dataclasses.replace(kernel, name="total", owner="all"), (kernel,))


class FakeJudge:
    """Judges by words in the files: `fault!`, `syntax!`, `wrong!`, `fast=NUMBER`; else rejects."""

    def __init__(self, config: JudgeConfig | None = None) -> None:
        self.config = config or JudgeConfig(device="cpu")
        self.size = "small"
        self.judged: list[str] = []
        self.closed = 0

    def evaluate(self, task: FakeTask, workspace: Any) -> Verdict:
        text = "\n".join(workspace.files.values())
        if "fault!" in text:
            raise EnvironmentFault("the compiler is missing")
        self.judged.append(task.id)
        common = {"task": task.id, "source_hash": workspace.hash}
        if "syntax!" in text:
            problem = Diagnostic("model_new.py", 3, 7, "error", "expected ';'", "  x\n  ^", "g++")
            return verdict_of(Outcome.COMPILE_ERROR, diagnostics=(problem,), **common)
        if "wrong!" in text:
            return verdict_of(Outcome.INCORRECT, **common)
        if "fast=" in text:
            speed = float(text.split("fast=")[1].split()[0])
            return verdict_of(
                eager=(speed, speed * 0.9, speed * 1.1),
                compiled=(speed / 2, speed * 0.45, speed * 0.55),
                counters=counted(dram_bytes_read=4096.0, sectors_per_request=4.0),
                coverage=Coverage(1.0, 0.0, 0.0),
                **common,
            )
        return verdict_of(Outcome.REJECTED, **{**common, "reason": "rule.torch_compute"})

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def fake_judge() -> FakeJudge:
    return FakeJudge()


@pytest.fixture
def fake_task() -> FakeTask:
    return FakeTask()


@pytest.fixture
def fake_tasks() -> tuple[FakeTask, ...]:
    return FakeTask(), FakeTask("L1/23", "Softmax"), FakeTask("L2/76", "Gemm_Add_ReLU")


@pytest.fixture
def make_verdict() -> Callable[..., Verdict]:
    return verdict_of


@pytest.fixture
def make_counters() -> Callable[..., Counters]:
    return counted


@pytest.fixture
def make_env(fake_judge: FakeJudge, fake_tasks: tuple[FakeTask, ...]) -> Callable[..., KernelEnv]:
    """Makes an environment on fakes."""

    def make(**kwargs: Any) -> KernelEnv:
        return KernelEnv(**{"task": fake_tasks[0], "judge": fake_judge, **kwargs})

    return make
