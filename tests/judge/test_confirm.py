"""Confirming synthesised tasks, here on the CPU; a GPU differs by its times only."""

import dataclasses

import pytest
import torch

from kernelgym.errors import UsageError
from kernelgym.judge import confirm
from kernelgym.tasks.records import TaskRecord

TEXT = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x) * 2


def get_inputs():
    return [torch.rand(64, 64)]


def get_init_inputs():
    return []
"""
RECORD = TaskRecord("t", TEXT)


@pytest.fixture
def quick_compiler(monkeypatch):
    """Leaves inductor's own work to inductor's tests."""
    compile_ = torch.compile
    monkeypatch.setattr(
        torch, "compile", lambda model, **options: compile_(model, backend="aot_eager", **options)
    )


def test_a_fit_task_gets_its_time(quick_compiler):
    found = confirm.confirm_record(RECORD, "cpu", "full", 1e-9, 10.0)
    assert found.problem == ""
    assert 1e-9 < found.record.measured_seconds < 10.0
    assert dataclasses.replace(found.record, measured_seconds=None) == RECORD


@pytest.mark.parametrize(
    ("body", "low", "problem"),
    [
        ("torch.tanh(x) * 2", 5.0, "expected 5.0 to 10.0 s, measured"),
        ("x @ x[:3]", 1e-9, "RuntimeError"),
        ("torch._dynamo.graph_break() or torch.tanh(x)", 1e-9, "Unsupported"),
        ("torch.tanh(x) * (2 if torch.compiler.is_compiling() else 3)", 1e-9, "got others"),
    ],
)
def test_an_unfit_task_is_told_apart(quick_compiler, body, low, problem):
    record = TaskRecord("t", TEXT.replace("torch.tanh(x) * 2", body))
    assert problem in confirm.confirm_record(record, "cpu", "full", low, 10.0).problem


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one")
def test_a_device_that_is_not_there():
    with pytest.raises(UsageError, match="device: expected one that torch sees, got 'cuda'"):
        confirm.confirm_record(RECORD, "cuda", "full", 0, 1)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_on_a_gpu():
    record = TaskRecord("t", TEXT.replace("64, 64", "16384, 16384"))
    found = confirm.confirm_record(record, "cuda", "full", 1e-4, 1.0)
    assert found.problem == ""
