"""Torch's profiler sees what the dispatch mode does not."""

import torch
from torch.utils._python_dispatch import _disable_current_modes

from kernelgym.judge.operators import OperatorRecorder
from kernelgym.judge.witness import OperatorWitness


def watched(body):
    """The witness and the recorder of one call."""
    with OperatorWitness() as witness, OperatorRecorder() as recorder:
        body(torch.ones(4, 4))
    return witness, recorder


def test_what_passes_the_mode_is_not_hidden():
    def body(x):
        torch.nn.functional.linear(x, x)
        torch.einsum("ij,jk->ik", x, x)
        torch.nn.functional.cross_entropy(x, torch.zeros(4, dtype=torch.long))
        x.t().contiguous().reshape(-1).max().item()

    witness, recorder = watched(body)
    assert witness.hidden == ()
    assert "aten::mm" in witness.watched
    assert witness.unrecorded(recorder.calls) == ()
    assert not witness.interrupted


def test_what_runs_with_modes_disabled_is_hidden():
    def body(x):
        with _disable_current_modes():
            torch.relu(x)
            x.clone()  # moves, and computes nothing

    witness, _ = watched(body)
    assert witness.hidden[0] == "aten::relu"
    assert "aten::clone" not in witness.hidden


def test_a_recorder_that_was_emptied_is_noticed():
    witness, recorder = watched(lambda x: torch.relu(x))
    recorder.calls.clear()
    assert witness.unrecorded(recorder.calls) == ("relu",)


def test_stopping_the_profiler_is_noticed():
    witness, _ = watched(lambda x: torch.autograd._disable_profiler_legacy())
    assert witness.interrupted
